// SPDX-License-Identifier: Apache-2.0
#include "judge/audit/finding.h"

#include <gtest/gtest.h>

#include "judge/base/fault.h"

namespace assay {
namespace {

TEST(Findings, TableIsSortedAndUnique) {
  for (std::size_t i = 1; i < finding_rules().size(); ++i)
    EXPECT_LT(finding_rules()[i - 1].code, finding_rules()[i].code);
}
TEST(Findings, UnknownCodeIsTheJudgesFault) {
  EXPECT_THROW(rule_of("no_such_code"), JudgeError);
}
TEST(Findings, WorstDecidesTheProposal) {
  const std::vector<Finding> f = {{"unstable_time", "", ""}, {"precision_downgrade", "", ""}};
  EXPECT_EQ(worst(f), Severity::kReject);
  EXPECT_EQ(proposed_verdict(f), "rubric_leak");
  EXPECT_EQ(proposed_verdict({}), "clean");
  EXPECT_EQ(proposed_verdict(std::vector<Finding>{{"unstable_time", "", ""}}), "clean");
}

}  // namespace
}  // namespace assay
