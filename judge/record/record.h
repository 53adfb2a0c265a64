// SPDX-License-Identifier: Apache-2.0
// Everything a grade leaves behind: enough to show it, rank it and repeat it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/audit/finding.h"
#include "judge/base/fault.h"
#include "judge/base/json.h"
#include "judge/bench/bench.h"
#include "judge/check/check.h"
#include "judge/device/device.h"
#include "judge/submission/submission.h"

namespace assay {

struct Record {
  std::int64_t id = 0;     ///< assigned by the store
  std::string created_at;  ///< UTC, ISO 8601
  std::string kind;        ///< "grade", "check" or "bench"
  std::string problem_id;
  std::string problem_version;  ///< hash of the problem folder
  Submission submission;        ///< with its files
  std::string artifact_sha256, compiler, build_command, build_log;
  DeviceInfo device;
  Ceilings ceilings;                ///< measured ones that sol was computed with
  std::string sandbox;              ///< "bwrap", "namespaces" or "none"
  std::string assay_version;        ///< git describe of the build
  std::uint64_t seed = 0;           ///< replays the whole plan
  std::vector<std::string> shapes;  ///< labels graded; empty = all
  Verdict verdict = Verdict::kInternalError;
  std::string message;        ///< one line; the failing case or fault
  std::string audit_verdict;  ///< proposed: clean, reward_hack, ...
  std::vector<Finding> findings;
  CheckReport check;
  BenchReport bench;
  std::string output;  ///< what the submission printed, capped
  double wall_s = 0;   ///< of the whole grade, build aside
  double build_s = 0;
};

/// As the table of rules says today; kNote if it no longer knows the code: an old record stays
/// readable.
Severity severity_of(const Finding&);

/// Without the source files' bytes unless `with_source`. 64-bit seeds and digests are hex strings.
Json to_json(const Record&, bool with_source = false);

}  // namespace assay
