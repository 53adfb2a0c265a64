// SPDX-License-Identifier: Apache-2.0
// How fast is it, honestly? See docs/measurement.md for the method.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/audit/finding.h"
#include "judge/device/device.h"
#include "judge/problem/problem.h"

namespace assay {

class Workbench;

struct BenchOptions {
  double budget_s = 2.0;  ///< wall clock per shape
  int min_rounds = 5;
  int max_rounds = 40;
  double precision = 0.01;  ///< stop when the 95 % interval of the median is within this share
};

/// What a window takes on the judge's clock besides its calls.
struct WindowCost {
  double per_call_us = 0;  ///< slope over the number of calls
  double error_us = 0;     ///< half the 95 % interval of that slope
  double fixed_us = 0;     ///< whatever the number of calls
};

/// Both clocks set to zero on calls of known length (wire::kControlCall_ns), before anything
/// hostile was loaded.
struct Control {
  double stamp_offset_us = 0;  ///< what a pair of stamps reads beyond the length of the call
  std::uint32_t pace_ns = 0;   ///< cuda: longer than any flush takes
  WindowCost paced;            ///< every flush stretched to pace_ns: the windows that are measured
  WindowCost free;             ///< flushes as long as they take: a flush left out would show
};

Control measure_control(Workbench&);

/// How many slots a bench of this shape wants: enough that a pair of windows lasts some 20 ms.
int wanted_slots(const Device&, const Problem&, const Shape&, const Ceilings& measured);

/// The result for one shape. Times are microseconds per call on a cold cache, on clocks that read
/// right for a kernel of known length (Control): launch latency that every call has is not in them.
struct ShapeBench {
  std::string shape;
  double median_us = 0, p5_us = 0, p95_us = 0;
  double ci_low_us = 0, ci_high_us = 0;  ///< bootstrap 95 % interval of the median
  double wall_us = 0;    ///< the judge's clock: slope over 1, N and 2N calls less the control's
  double unseen_us = 0;  ///< per call, what the wall clock saw and the stamps did not; about 0
  double unseen_low_us = 0, unseen_high_us = 0;  ///< its 95 % interval
  double control_error_us = 0;                   ///< of the control that was subtracted
  double charged_us = 0;  ///< cuda: unseen time added to the stamps; median, p5, p95, ci hold it
  double single_us = 0;   ///< median with slots handed out one by one
  double fresh_us = 0;    ///< median over windows on a base never seen
  double rekeyed_us = 0;  ///< median over re-keyed windows
  double repeat_us = 0;   ///< median over windows whose bytes did not change (a probe, not scored)
  double stamp_offset_us = 0;  ///< what was subtracted from every pair of stamps
  int windows = 0, calls = 0, dropped_windows = 0;
  double published_flops = 0, published_bytes = 0;
  double frac = 0;        ///< published rate / datasheet peak
  double floor_us = 0;    ///< from floor formulas at the rates measured on this machine
  double sol = 0;         ///< floor_us / median_us
  double physics_us = 0;  ///< the same at datasheet peaks: nothing can be faster
  double core_mhz = 0, temperature_c = 0, power_w = 0;
};

struct BenchReport {
  std::vector<ShapeBench> shapes;
  double frac = 0;  ///< geometric mean over shapes
  double sol = 0;
  std::vector<Finding> findings;
};

/// Datasheet peaks of known hardware (data/hardware.yaml): keys as in Ceilings, plus "dram"
/// (bytes/s). Empty when the GPU is not listed. A cpu has no datasheet here: cpu_bounds().
Ceilings datasheet_peaks(const DeviceInfo&);

/// Measures one shape on a workbench whose check has passed; appends to `report`. SubmissionFault
/// if a timed output is wrong. Findings that reject are left in the report for the caller.
void bench_shape(Workbench&, const Control&, const Ceilings& measured, const Ceilings& datasheet,
                 const BenchOptions&, std::uint64_t seed, BenchReport& report);

/// Geometric means over shapes.
void summarise(BenchReport&);

}  // namespace assay
