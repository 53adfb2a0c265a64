// SPDX-License-Identifier: Apache-2.0
// One problem size on one device: the buffers a submission sees, the judge's pristine copies beside
// them, and windows whose every output is verified. check/ and bench/ are written in its terms.
//
// Memory, all the judge's:
//   shared, runner read-only    constants; each slot's inputs
//   shared, runner writable     each slot's outputs and inouts
//   private                     bases (inputs and expected), each slot's expected, the inouts to be
//                               handed over (again before every window), captured outputs
// Every tensor in a shared arena is followed and preceded by a guard zone, sits at a secret offset
// that is an odd multiple of ASSAY_ALIGNMENT, and the last input ends where the mapping ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "judge/device/device.h"
#include "judge/problem/ops.h"
#include "judge/problem/problem.h"
#include "judge/run/memory.h"
#include "judge/run/session.h"

namespace assay {

/// What a case draws: nominal, a stress scale, or a structural case.
struct CaseSpec {
  std::string name = "nominal";
  std::map<std::string, float> scale;
  bool structural = false;
  Tolerance tolerance;
};

struct OutputStats {
  std::string output;
  CompareStats stats;
  std::uint64_t digest = 0;
};

/// What one verified window found, besides its times.
struct VerifiedWindow {
  WindowResult times;
  std::vector<std::vector<OutputStats>> slots;  ///< per call, in window order
  bool late_write = false;                      ///< output bytes changed after run() returned
  std::string late_evidence;
  int wrong_call = -1;  ///< first call in the window with a bad output, or -1
};

class Workbench {
 public:
  /// Draws the layout from `seed`, allocates `slots` slots (at least 2), starts and maps the
  /// runner, but does not load anything: control windows come first.
  Workbench(Device&, const Problem&, const Shape&, const SessionOptions&, int slots,
            std::uint64_t seed);
  ~Workbench();

  const Problem& problem() const;
  const Shape& shape() const;
  Device& device();
  int slot_count() const;
  /// Slots from here on are aligned as allocators align; those before sit at odd offsets.
  int first_aligned_slot() const;

  /// A window of calls of known length (wire::kControlCall_ns). Only before load().
  WindowResult control_window(int calls, std::uint32_t pace_ns);
  void load(const Artifact&);

  /// Draws constants for this case and (re-)prepares the submission with them.
  void set_constants(std::uint64_t seed, const CaseSpec&);
  /// Draws a base (inputs and expected) into base number `base` (< base_count()).
  void draw_base(int base, std::uint64_t seed, const CaseSpec&);
  int base_count() const;
  /// False: this size has too few symmetries, so every slot must get a base of its own.
  bool rekeys() const;

  /// Writes base `base`, moved by symmetry `key`, into slot `slot`. key 0 = as drawn.
  void assign(int slot, int base, std::uint64_t key);

  /// Poisons every output, flushes, runs the slots in this order, captures, verifies.
  /// SubmissionFault on out-of-bounds writes, changed inputs, writes to slots not handed out. A
  /// wrong output is left to the caller (wrong_call, stats).
  VerifiedWindow run(const std::vector<std::uint32_t>& slots, const Tolerance&,
                     std::uint32_t pace_ns = 0);

  /// For those who try what a submission might have done (pipeline/admit.h). The tensors of a slot
  /// and the constants may be written to; prepare_again() hands the constants over as they are now,
  /// while what was expected stays as it is.
  const Slot& slot(int) const;
  Tensors constants() const;
  void prepare_again();
  /// Judges `outputs` (the judge's, in the order of Problem::written) as if slot `slot` held them.
  std::vector<OutputStats> judge(int slot, Tensors outputs, const Tolerance&);

  /// Digest of a slot's inputs as the submission sees them.
  std::uint64_t input_digest(int slot);

  /// Digest of the outputs captured from a slot in the last window it was part of; 0 = none yet.
  std::uint64_t last_digest(int slot) const;

  const std::string& output() const;
  void release();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// How many slots fit: enough for `wanted`, within a share of the device's free memory.
int fitting_slots(Device&, const Problem&, const Shape&, int wanted);

}  // namespace assay
