// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "judge/check/check.h"

namespace assay {
namespace {

CompareStats stats_of(double error, double expected, double noise) {
  CompareStats s;
  s.count = 1;
  s.sum_sq_error = error * error;
  s.sum_sq_expected = expected * expected;
  s.sum_sq_noise = noise * noise;
  return s;
}

TEST(NoiseRatio, ErrorOverRoundingAndAccumulation) {
  EXPECT_NEAR(noise_ratio(stats_of(10, 100, 3), Noise{0.04, 3}), 2.0, 1e-12);  // hypot(3, 4) = 5
}
TEST(NoiseRatio, ExactOutputsAreZero) {
  EXPECT_EQ(noise_ratio(stats_of(0, 1, 0), Noise{0, 1}), 0);
}
TEST(NoiseRatio, AnyErrorWhereNoneIsAllowedIsInfinite) {
  EXPECT_TRUE(std::isinf(noise_ratio(stats_of(1e-9, 1, 0), Noise{0, 1})));
}

TEST(Failure, NamesEverythingNeededToLook) {
  CaseResult c;
  c.shape = "M=1 N=2";
  c.seed_index = 2;
  c.name = "x_small";
  c.output = "y";
  c.stats.count = 10;
  c.stats.bad = 3;
  c.stats.worst_index = 7;
  c.stats.worst_expected = 1.5f;
  c.stats.worst_got = -2.25f;
  const std::string m = describe_failure(c, {0.1f, 0.2f});
  for (const char* part :
       {"M=1 N=2", "seed 2", "x_small", "3 of 10", "index 7", "1.5", "-2.25", "0.1"})
    EXPECT_NE(m.find(part), std::string::npos) << part << " in: " << m;
}

}  // namespace
}  // namespace assay
