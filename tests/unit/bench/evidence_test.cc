// SPDX-License-Identifier: Apache-2.0
// The thresholds of bench/evidence.cc against made-up samples: each cheat's signature raises its
// finding, and an honest signature raises none.
#include <gtest/gtest.h>

#include "judge/bench/samples.h"
#include "judge/bench/stats.h"

namespace assay {
namespace {

/// Windows as an honest kernel of `us` a call gives them, with a little spread.
Samples honest(double us, int calls = 12, int rounds = 8) {
  Samples s;
  for (int r = 0; r < rounds; ++r) {
    for (WindowKind k : {WindowKind::kRekeyed, WindowKind::kFresh, WindowKind::kRepeat}) {
      Window w{k, k != WindowKind::kRepeat, 0, {}, 0};
      for (int i = 0; i < calls; ++i) w.call_us.push_back(us * (1 + 0.01 * ((i * 7 + r) % 5 - 2)));
      s.windows.push_back(w);
    }
    s.windows.push_back({WindowKind::kSingle, true, 0, {us * 1.02}, 0});
    s.slope_us.push_back(us * (1 + 0.005 * (r % 3 - 1)));
    s.unseen_us.push_back(0.005 * us * (r % 3 - 1));
  }
  return s;
}

void scale(Samples& s, WindowKind kind, double factor) {
  for (Window& w : s.windows)
    if (w.kind == kind)
      for (double& us : w.call_us) us *= factor;
}

ShapeBench summary(const Samples& s, double physics_us = 1, double sol = 0.5) {
  ShapeBench b;
  b.shape = "M=1";
  b.median_us = median(s.window_medians({WindowKind::kRekeyed, WindowKind::kFresh}));
  b.ci_low_us = b.median_us * 0.99;
  b.ci_high_us = b.median_us * 1.01;
  b.fresh_us = median(s.window_medians({WindowKind::kFresh}));
  b.rekeyed_us = median(s.window_medians({WindowKind::kRekeyed}));
  b.repeat_us = median(s.window_medians({WindowKind::kRepeat}));
  b.single_us = median(s.calls({WindowKind::kSingle}));
  b.wall_us = median(s.slope_us);
  b.unseen_us = median(s.unseen_us);
  b.unseen_low_us = bootstrap_median(s.unseen_us, 1).low;
  b.unseen_high_us = bootstrap_median(s.unseen_us, 1).high;
  b.physics_us = physics_us;
  b.sol = sol;
  return b;
}

std::vector<std::string> codes(const Samples& s, const ShapeBench& b, bool cpu) {
  std::vector<Finding> f;
  weigh(s, b, cpu, 7, f);
  std::vector<std::string> out;
  for (const Finding& x : f) out.push_back(x.code);
  return out;
}

class Evidence : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Devices, Evidence, testing::Values(false, true));

TEST_P(Evidence, HonestRaisesNothing) {
  const Samples s = honest(500);
  EXPECT_TRUE(codes(s, summary(s), GetParam()).empty());
}

TEST_P(Evidence, StampsBelowTheWallClock) {
  Samples s = honest(500);
  for (double& u : s.unseen_us) u = 450;
  EXPECT_EQ(codes(s, summary(s), GetParam()), std::vector<std::string>{"clock_mismatch"});
}

TEST_P(Evidence, WindowsShorterThanTheirPartsLeftTheFlushOut) {
  const bool cpu = GetParam();  // where no flush is in a window
  for (const bool paced : {true, false}) {
    const auto missing = [&](double us_a_call) {
      Samples s = honest(100);
      for (Window& w : s.windows)
        if (w.paced == paced) w.over_us = -us_a_call * static_cast<double>(w.call_us.size());
      return codes(s, summary(s), cpu);
    };
    EXPECT_EQ(missing(70),
              cpu ? std::vector<std::string>{} : std::vector<std::string>{"clock_mismatch"});
    EXPECT_TRUE(missing(8).empty());
  }
}

TEST_P(Evidence, WorkThatTakesTheSameTimeInEveryWindow) {
  Samples s = honest(500);
  for (Window& w : s.windows) w.over_us = 50;
  EXPECT_TRUE(codes(s, summary(s), GetParam()).empty());
  for (Window& w : s.windows) w.over_us = 9000;
  EXPECT_EQ(codes(s, summary(s), GetParam()), std::vector<std::string>{"clock_mismatch"});
}

TEST(Charge, SomeUnseenTimeIsChargedNotPunished) {
  Samples s = honest(100);
  EXPECT_EQ(charge_us(s, summary(s), 0, 7), 0);
  for (double& u : s.unseen_us) u = 8;
  ShapeBench b = summary(s);
  b.charged_us = charge_us(s, b, 0, 7);
  EXPECT_DOUBLE_EQ(b.charged_us, 8);
  EXPECT_EQ(codes(s, b, false), std::vector<std::string>{"uncounted_time"});
}
TEST(Charge, SoIsTimeThatEveryWindowHasOnce) {
  Samples s = honest(100, 40);
  for (Window& w : s.windows) w.over_us = 100;
  EXPECT_EQ(charge_us(s, summary(s), 0, 7), 0);  // a window's own cost varies by as much
  for (Window& w : s.windows) w.over_us = 400;
  ShapeBench b = summary(s);
  b.charged_us = charge_us(s, b, 0, 7);
  EXPECT_DOUBLE_EQ(b.charged_us, 10);
  EXPECT_EQ(codes(s, b, false), std::vector<std::string>{"uncounted_time"});
}

TEST(Charge, SoIsWorkBesideTheFlushOfAFreeWindow) {
  Samples s = honest(20, 40);
  const auto free = [&](double us_a_call) {
    for (Window& w : s.windows)
      if (!w.paced) w.over_us = us_a_call * static_cast<double>(w.call_us.size());
  };
  free(9);
  EXPECT_EQ(charge_us(s, summary(s), 4, 7), 0);  // the flush varies, and writes outputs back
  EXPECT_DOUBLE_EQ(charge_us(s, summary(s), 0, 7), 9);
}

TEST(Merging, TheFirstCallOfAWindowIsAlone) {
  Samples s = honest(20);
  for (Window& w : s.windows)
    if (w.call_us.size() > 1)
      for (std::size_t i = 1; i < w.call_us.size(); ++i) w.call_us[i] = 8;
  const auto c = codes(s, summary(s), false);
  EXPECT_EQ(std::count(c.begin(), c.end(), "merged_calls"), 1);
}

TEST_P(Evidence, RekeyedMuchFasterThanFresh) {
  Samples s = honest(500);
  scale(s, WindowKind::kRekeyed, 0.3);
  scale(s, WindowKind::kRepeat, 0.3);
  const auto c = codes(s, summary(s), GetParam());
  EXPECT_EQ(std::count(c.begin(), c.end(), "memo_by_invariant"), 1);
}

TEST_P(Evidence, RepeatedBytesMuchFaster) {
  Samples s = honest(500);
  scale(s, WindowKind::kRepeat, 0.2);
  EXPECT_EQ(codes(s, summary(s), GetParam()), std::vector<std::string>{"content_memo"});
}

TEST_P(Evidence, FirstCallDoesTheWorkOfAll) {
  Samples s = honest(500);
  for (Window& w : s.windows) {
    if (w.kind == WindowKind::kSingle) continue;
    const double all = w.sum_us();
    for (double& us : w.call_us) us = 0.1;
    w.call_us[0] = all;
  }
  const auto c = codes(s, summary(s, 0.01), GetParam());
  EXPECT_EQ(std::count(c.begin(), c.end(), "merged_calls"), 1);
}

TEST_P(Evidence, OneCallAloneTakesTheTimeOfAWindow) {
  Samples s = honest(500);
  scale(s, WindowKind::kSingle, 12);
  EXPECT_EQ(codes(s, summary(s), GetParam()), std::vector<std::string>{"merged_calls"});
}

TEST_P(Evidence, FasterThanPhysicsRejects) {
  const Samples s = honest(500);
  EXPECT_EQ(codes(s, summary(s, 600), GetParam()), std::vector<std::string>{"faster_than_physics"});
}

TEST_P(Evidence, FasterThanMeasuredOnlyWarns) {
  const Samples s = honest(500);
  const auto c = codes(s, summary(s, 1, 1.1), GetParam());
  ASSERT_EQ(c, std::vector<std::string>{"faster_than_measured"});
  EXPECT_EQ(rule_of(c[0]).severity, Severity::kWarn);
}

}  // namespace
}  // namespace assay
