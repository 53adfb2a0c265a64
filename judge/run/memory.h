// SPDX-License-Identifier: Apache-2.0
// The buffers of a workbench (workbench.h says what lies where). No behaviour beyond allocation and
// placement.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "judge/device/device.h"
#include "judge/problem/problem.h"
#include "judge/run/session.h"

namespace assay {

/// Views of `specs` at this size, without data.
std::vector<Tensor> views(const std::vector<TensorSpec>& specs, const Shape& shape);
/// Their bytes, each rounded up to what allocate_all gives it.
std::int64_t total_bytes(const std::vector<Tensor>& tensors);

struct Slot {
  std::vector<Tensor> inputs;   ///< as the submission sees them; then the inouts to be handed over,
                                ///< which are the judge's
  std::vector<Tensor> outputs;  ///< as the submission sees them; then the inouts it works on
  std::vector<Tensor> captured;  ///< the judge's copy of the outputs, same order
  std::vector<Tensor> expected;
  std::vector<wire::TensorRef> input_refs, output_refs;
  std::unique_ptr<Buffer> expected_memory, inout_memory;
  std::uint64_t last_digest = 0;  ///< of the outputs captured from it last
};

struct Base {
  std::vector<Tensor> inputs, expected;
  std::unique_ptr<Buffer> input_memory, expected_memory;
};

struct WorkbenchMemory {
  /// Slots below this one sit at odd offsets; check uses them. The rest are aligned as allocators
  /// align.
  static constexpr int kOddSlots = 3;

  WorkbenchMemory(Device&, const Problem&, const Shape&, int slots, int bases, std::uint64_t seed);
  /// Shares the arenas with a runner and tells it where each slot is.
  void introduce(Session&);

  std::unique_ptr<Arena> constant_arena;  ///< null if the problem has no constants
  std::unique_ptr<Arena> input_arena, output_arena;
  std::unique_ptr<Buffer> captured;  ///< same size and layout as output_arena
  std::unique_ptr<Buffer> derived_memory;
  std::vector<Tensor> constants, derived;
  std::vector<wire::TensorRef> constant_refs;
  std::vector<Slot> slots;
  std::vector<Base> bases;

 private:
  void place_constants(Device&, const Problem&, const Shape&, std::uint64_t seed);
  void place_inputs(Device&, const Problem&, const Shape&, std::uint64_t seed);
  void place_outputs(Device&, const Problem&, const Shape&, std::uint64_t seed);
};

}  // namespace assay
