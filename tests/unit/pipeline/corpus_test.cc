// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/corpus.h"

#include <gtest/gtest.h>

#include <fstream>

#include "judge/base/paths.h"

namespace assay {
namespace {

std::string error_of(const std::string& yaml) {
  const TempDir root("corpus-test");
  std::filesystem::create_directory(root.path() / "a_case");
  std::ofstream(root.path() / "a_case" / "expect.yaml") << yaml;
  try {
    load_corpus(root.path());
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}

const std::string kGood =
    "problem: topk\ndevice: cpu\nkind: hostile\nverdict: wrong_answer\nwhy: a test\n";

TEST(Corpus, ReadsAGoodCase) {
  EXPECT_EQ(error_of(kGood), "");
}
TEST(Corpus, EveryErrorNamesFileAndLine) {
  EXPECT_NE(error_of(kGood + "verdcit: x\n").find("expect.yaml:6: unknown key 'verdcit'"),
            std::string::npos);
  EXPECT_NE(error_of("problem: topk\n").find("missing key 'device'"), std::string::npos);
  EXPECT_NE(error_of("problem: [\n").find("expect.yaml:"), std::string::npos);
  EXPECT_NE(error_of("- a\n").find("expected a map"), std::string::npos);
}
TEST(Corpus, UnknownWordsAreRefused) {
  EXPECT_NE(error_of("problem: topk\ndevice: cpu\nkind: hostile\nverdict: wrogn\nwhy: x\n"), "");
  EXPECT_NE(error_of(kGood + "findings: no_such_finding\n"), "");
}
TEST(Corpus, AHostileCaseMayNotExpectAcceptance) {
  EXPECT_NE(error_of("problem: topk\ndevice: cpu\nkind: hostile\nverdict: accepted\nwhy: x\n"), "");
  EXPECT_NE(
      error_of("problem: topk\ndevice: cpu\nkind: lookalike\nverdict: wrong_answer\nwhy: x\n"), "");
}
TEST(Corpus, TheShippedCorpusIsWellFormed) {
  const auto cases = load_corpus(home_dir() / "corpus");
  int cpu_hostile = 0, cpu_lookalike = 0;
  for (const CorpusCase& c : cases)
    if (c.device == wire::Backend::kCpu) (c.hostile ? cpu_hostile : cpu_lookalike) += 1;
  EXPECT_GE(cpu_hostile, 26);
  EXPECT_GE(cpu_lookalike, 5);
}

}  // namespace
}  // namespace assay
