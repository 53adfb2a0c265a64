// SPDX-License-Identifier: Apache-2.0
#include "judge/run/reply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "judge/base/paths.h"
#include "tests/fuzz/targets.h"

namespace assay {
namespace {

using wire::Ack;
using wire::Stage;
using wire::WindowDone;

const ExpectedReply kWindow{Stage::kRun, true, 2};
const ExpectedReply kPrepare{Stage::kPrepare, false, 0};

TEST(Reply, AnHonestWindowPasses) {
  EXPECT_EQ(invalid(WindowDone{{1, 2}, {3, 4}, {3, 4}}, kWindow), std::nullopt);
}
TEST(Reply, EveryLieAboutAWindowIsRefused) {
  EXPECT_TRUE(invalid(WindowDone{{1}, {3}, {3}}, kWindow));        // fewer calls
  EXPECT_TRUE(invalid(WindowDone{{1, 2}, {3, 4}, {3}}, kWindow));  // a fingerprint short
  EXPECT_TRUE(invalid(WindowDone{{1, NAN}, {3, 4}, {3, 4}}, kWindow));
  EXPECT_TRUE(invalid(WindowDone{{1, -1}, {3, 4}, {3, 4}}, kWindow));
  EXPECT_TRUE(invalid(WindowDone{{1, INFINITY}, {3, 4}, {3, 4}}, kWindow));
  EXPECT_TRUE(invalid(Ack{}, kWindow));                                // success without results
  EXPECT_TRUE(invalid(WindowDone{{1, 2}, {3, 4}, {3, 4}}, kPrepare));  // not asked for
}
TEST(Reply, FailuresMustBeOfWhatWasAsked) {
  EXPECT_FALSE(invalid(Ack{Stage::kPrepare, 2, "x"}, kPrepare));
  EXPECT_FALSE(invalid(Ack{Stage::kSetup, 2, "x"}, kPrepare));
  EXPECT_TRUE(invalid(Ack{Stage::kRun, 2, "x"}, kPrepare));
  EXPECT_TRUE(invalid(Ack{Stage::kPrepare, 0, "x"}, kPrepare));
  EXPECT_TRUE(invalid(Ack{Stage::kNone, 1, ""}, kPrepare));
  EXPECT_TRUE(invalid(Ack{Stage::kNone, 0, "text"}, kPrepare));
}
TEST(Reply, UnsupportedIsRefusedAndTheRestIsARuntimeError) {
  EXPECT_EQ(fault_of(Ack{Stage::kPrepare, 1, ""}).verdict(), Verdict::kRefused);
  EXPECT_EQ(fault_of(Ack{Stage::kRun, 7, "boom"}).verdict(), Verdict::kRuntimeError);
  EXPECT_EQ(fault_of(Ack{Stage::kLoad, 1, "no symbol"}).verdict(), Verdict::kRuntimeError);
}
TEST(Reply, ForeignTextIsMadeHarmless) {
  EXPECT_EQ(printable("a\nb\x1b[31m\xff"), "a b?[31m?");
}

/// What libFuzzer found worth keeping, through the properties it was found with.
TEST(Fuzz, TheKeptCorpusHoldsEveryProperty) {
  int files = 0;
  const std::filesystem::path root = ASSAY_SOURCE_DIR "/tests/fuzz/corpus";
  using Target = void (*)(std::span<const std::byte>);
  const std::pair<const char*, Target> targets[] = {
      {"request", fuzz::request}, {"reply", fuzz::reply}, {"session", fuzz::session}};
  for (const auto& [name, target] : targets)
    for (const auto& e : std::filesystem::directory_iterator(root / name)) {
      const std::string bytes = read_file(e.path());
      target(std::as_bytes(std::span(bytes)));
      ++files;
    }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace assay
