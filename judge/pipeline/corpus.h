// SPDX-License-Identifier: Apache-2.0
// corpus/<case>/: hostile submissions that must be caught and look-alikes that must be accepted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "judge/device/device.h"
#include "judge/record/record.h"
#include "judge/sandbox/sandbox.h"

namespace assay {

/// expect.yaml of one case. Keys: problem, device ("cpu" | "cuda"), kind ("hostile" | "lookalike"),
/// verdict (one, or a list of acceptable ones), findings (optional: each must be present), why (one
/// sentence).
struct CorpusCase {
  std::string name;
  std::filesystem::path folder;
  std::string problem;
  wire::Backend device = wire::Backend::kCpu;
  bool hostile = true;
  std::vector<Verdict> verdicts;
  std::vector<std::string> findings;
  std::string why;
};

/// UsageError "path:line: message" on malformed cases.
std::vector<CorpusCase> load_corpus(const std::filesystem::path& root);

struct CorpusRow {
  CorpusCase expected;
  std::string outcome;  ///< "caught", "accepted", "missed", "false_alarm", "unexpected", "skipped"
  Record record;        ///< empty when skipped
  std::vector<std::string> left_behind;  ///< processes, files, shared memory, mounts
  double wall_s = 0;
};
struct CorpusReport {
  int cases = 0, caught = 0, accepted = 0, missed = 0, false_alarms = 0, unexpected = 0,
      left_behind = 0, skipped = 0;
  std::vector<CorpusRow> rows;
  bool ok() const {
    return missed == 0 && false_alarms == 0 && unexpected == 0 && left_behind == 0;
  }
};
/// Grades every case whose device this is; the others are skipped. A hostile case with another
/// rejecting verdict than expected is "unexpected", not "caught"; a case after which anything is
/// left on the machine counts as left_behind besides.
CorpusReport run_corpus(Device&, const std::vector<CorpusCase>&, const Ceilings&, SandboxKind);

}  // namespace assay
