// SPDX-License-Identifier: Apache-2.0
// Findings are evidence: what was seen, and where. Verdicts are decisions: the table below turns a
// finding into a severity and a proposed audit verdict; a person may overrule it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class Severity {
  kNote,    ///< worth knowing
  kWarn,    ///< look at it
  kReject,  ///< the grade is `refused` for it
};
const char* name(Severity);

struct Finding {
  std::string code;      ///< one of finding_rules()
  std::string shape;     ///< label, or empty
  std::string evidence;  ///< one sentence with the numbers seen
};

struct FindingRule {
  std::string_view code;
  Severity severity;
  std::string_view proposed;  ///< audit verdict: clean, interesting, rubric_leak, reward_hack, bug
  std::string_view meaning;   ///< one sentence for readers
};

/// The whole table, sorted by code. A new rule is one row here and the code that raises it.
std::span<const FindingRule> finding_rules();
/// JudgeError if `code` is not in the table.
const FindingRule& rule_of(std::string_view code);
/// The worst severity among findings; kNote when there are none.
Severity worst(std::span<const Finding>);
/// "clean", or the proposed verdict of the worst finding.
std::string proposed_verdict(std::span<const Finding>);

}  // namespace assay
