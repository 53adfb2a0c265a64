// SPDX-License-Identifier: Apache-2.0
#include "judge/bench/stats.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

TEST(Stats, MedianOfEvenCountIsBetween) {
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
}
TEST(Stats, NoValuesIsNotANumber) {
  EXPECT_TRUE(std::isnan(median({})));
}
TEST(Stats, QuantilesReachTheEnds) {
  EXPECT_DOUBLE_EQ(quantile({5, 1, 9}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({5, 1, 9}, 1), 9);
}
TEST(Stats, GeometricMean) {
  EXPECT_NEAR(geometric_mean({1, 4, 16}), 4, 1e-12);
  EXPECT_EQ(geometric_mean({1, 0}), 0);  // one impossible shape must not vanish in the mean
  EXPECT_EQ(geometric_mean({}), 0);
}
TEST(Stats, QuantileIsMonotoneAndInside) {
  EXPECT_TRUE(rc::check([](std::vector<int> v) {
    RC_PRE(!v.empty());
    const std::vector<double> d(v.begin(), v.end());
    const double lo = quantile(d, 0.05), mid = quantile(d, 0.5), hi = quantile(d, 0.95);
    RC_ASSERT(lo <= mid && mid <= hi);
    RC_ASSERT(*std::min_element(d.begin(), d.end()) <= lo);
    RC_ASSERT(hi <= *std::max_element(d.begin(), d.end()));
  }));
}
TEST(Stats, SlopeOfTheLeastSquaresLine) {
  EXPECT_DOUBLE_EQ(slope({1, 100, 200}, {12, 210, 410}), 2);
  EXPECT_NEAR(slope({1, 2, 3}, {0, 9, 2}), 1, 1e-12);  // the middle one of three has no say
  EXPECT_TRUE(std::isnan(slope({4, 4}, {1, 2})));
}
TEST(Stats, TheMidmeanIsFineAndRobust) {
  EXPECT_DOUBLE_EQ(midmean({1, 2, 3}), 2);
  EXPECT_DOUBLE_EQ(midmean({0, 10, 11, 1e9}), 10.5);
  std::vector<double> steps;  // a clock of step 1 that reads 5 or 6
  for (int i = 0; i < 100; ++i) steps.push_back(i % 5 < 2 ? 6 : 5);
  EXPECT_DOUBLE_EQ(median(steps), 5);
  EXPECT_NEAR(midmean(steps), 5.3, 0.01);
}
TEST(Stats, BootstrapCoversTheMedianAndRepeats) {
  std::vector<double> v;
  for (int i = 0; i < 101; ++i) v.push_back(i);
  const Interval a = bootstrap_median(v, 3), b = bootstrap_median(v, 3);
  EXPECT_LE(a.low, 50);
  EXPECT_GE(a.high, 50);
  EXPECT_GT(a.high - a.low, 5);
  EXPECT_EQ(a.low, b.low);
}

}  // namespace
}  // namespace assay
