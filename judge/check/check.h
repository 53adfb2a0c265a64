// SPDX-License-Identifier: Apache-2.0
// Is it right? Runs the frozen plan of cases for one shape and compares every output with the
// oracle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/audit/finding.h"
#include "judge/device/compare.h"
#include "judge/problem/problem.h"

namespace assay {

class Workbench;  // run/workbench.h

/// One case = shape x seed x distribution (nominal, a stress scale, or a structural case).
struct CaseResult {
  std::string shape;
  int seed_index = 0;
  std::string name;    ///< "nominal", a stress name, a structural name
  std::string output;  ///< which output
  CompareStats stats;
  double noise_ratio = 0;  ///< RMS error / noise floor; 0 where the output is exact
  std::uint64_t input_digest = 0;
  std::uint64_t output_digest = 0;
};

struct CaseSpec;  // run/workbench.h
/// Nominal first, then the stress scales, then the structural cases.
std::vector<CaseSpec> check_cases(const Problem&);

struct CheckReport {
  std::vector<CaseResult> cases;
  std::vector<Finding> findings;
  /// Over every case's digests and statistics, in order: a replay of the same seed must give the
  /// same.
  std::uint64_t digest() const;
};

/// The message of a failed case: shape, seed, case, output, worst index, expected, got, tolerance,
/// counts.
std::string describe_failure(const CaseResult&, const Tolerance&);

/// RMS error over the noise floor of the output (rounding to its dtype, and the problem's declared
/// accumulation error); 0 when both are 0.
double noise_ratio(const CompareStats&, const Noise&);

/// Runs every case for the workbench's shape. Throws SubmissionFault at the first failing one (the
/// report so far is kept in `report`).
void check_shape(Workbench&, std::uint64_t seed, CheckReport& report);

}  // namespace assay
