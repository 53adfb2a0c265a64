// SPDX-License-Identifier: Apache-2.0
// The raw material of one shape's measurement, before any conclusion.
#pragma once

#include <vector>

#include "judge/bench/bench.h"
#include "judge/run/session.h"

namespace assay {

enum class WindowKind {
  kRekeyed,  ///< bases seen before, moved by an exact symmetry
  kFresh,    ///< every slot on a base of its own, never seen
  kSingle,   ///< one slot alone
  kRepeat,   ///< no input byte changed since the window before: a probe, not scored
};

/// One window: the judge's clock, and the stamps less their offset.
struct Window {
  WindowKind kind = WindowKind::kRekeyed;
  bool paced = true;
  double wall_us = 0;
  std::vector<double> call_us;
  double over_us = 0;  ///< wall time that neither the cost of such a window nor the stamps hold

  double sum_us() const;
};

struct Samples {
  std::vector<Window> windows;   ///< those kept
  std::vector<double> slope_us;  ///< per round: wall time per call, control subtracted
  std::vector<double>
      unseen_us;       ///< per round: the part of that slope which the stamps do not explain
  int dropped = 0;     ///< windows dropped for throttling or stolen time
  ClockSample clocks;  ///< the last sample

  /// The middle of each window of these kinds (midmean).
  std::vector<double> window_medians(std::initializer_list<WindowKind>) const;
  std::vector<double> calls(std::initializer_list<WindowKind>) const;
};

/// Times, frac, sol and floors from the samples.
ShapeBench score(const Samples&, const Problem&, const Shape&, const Control&, const DeviceInfo&,
                 const Ceilings& measured, const Ceilings& datasheet, std::uint64_t seed);

/// cuda: time per call that only the judge's clock saw and that is not noise, be it in every call,
/// once in a window, or beside the flush of a free window (where outputs left in the L2 cost
/// `writeback_us`); 0 if there is none. It counts as the kernel's: understating stamps gains
/// nothing.
double charge_us(const Samples&, const ShapeBench&, double writeback_us, std::uint64_t seed);

/// What the samples say about honesty. Appends findings.
void weigh(const Samples&, const ShapeBench&, bool cpu, std::uint64_t seed,
           std::vector<Finding>& findings);

}  // namespace assay
