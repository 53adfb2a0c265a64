// SPDX-License-Identifier: Apache-2.0
// The whole flow in one place: build -> check -> bench -> findings -> record. The only code that
// knows more than one stage, and the only place where a SubmissionFault becomes a verdict.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/bench/bench.h"
#include "judge/device/device.h"
#include "judge/problem/problem.h"
#include "judge/record/record.h"
#include "judge/run/session.h"
#include "judge/sandbox/sandbox.h"
#include "judge/submission/submission.h"

namespace assay {

struct GradeOptions {
  bool check = true;
  bool bench = true;
  SandboxKind sandbox = SandboxKind::kAuto;
  std::optional<std::uint64_t> seed;  ///< default: secret, from the kernel
  std::vector<int> shapes;            ///< indices into the problem's list; empty = all
  BenchOptions bench_options;
};

/// Never throws SubmissionFault: it becomes the record's verdict. A JudgeError becomes
/// internal_error with its message. UsageError and Interrupted pass through. The record is not
/// stored.
Record grade(Device&, const Problem&, const Submission&, const Ceilings&, const GradeOptions&);

/// The shapes `wanted` names, all if it is empty. UsageError on one that does not exist.
std::vector<Shape> chosen_shapes(const Problem&, const Device&, const std::vector<int>& wanted);
/// How a runner is started for this problem.
SessionOptions session_options(const Device&, const Problem&, SandboxKind);

struct ReplayResult {
  bool identical = false;  ///< every digest and statistic of the check agrees bit for bit
  std::string difference;  ///< the first that does not
  Record again;
};
/// Repeats a stored record's check from its seed and source. UsageError if it was made on another
/// kind of device or another version of the problem.
ReplayResult replay(Device&, const Problem&, const Record&, SandboxKind);

}  // namespace assay
