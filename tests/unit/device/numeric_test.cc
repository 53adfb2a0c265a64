// SPDX-License-Identifier: Apache-2.0
#include "judge/device/numeric.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <set>

namespace assay {
namespace {

/// The value of a small float format, from its definition.
double decode(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1 : 1;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1 + fraction, exponent - bias);
}

TEST(Numeric, E4m3DecodesAsDefined) {
  for (unsigned b = 0; b < 256; ++b) {
    const float f = to_float(E4m3{static_cast<std::uint8_t>(b)});
    if ((b & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(f));
    else
      EXPECT_EQ(f, decode(b, 4, 3)) << b;
  }
}
TEST(Numeric, F16AndBf16DecodeAsDefined) {
  for (unsigned b = 0; b < 65536; ++b) {
    if ((b & 0x7c00) != 0x7c00) {
      ASSERT_EQ(to_float(F16{static_cast<std::uint16_t>(b)}), decode(b, 5, 10)) << b;
    }
    if ((b & 0x7f80) != 0x7f80) {
      ASSERT_EQ(to_float(Bf16{static_cast<std::uint16_t>(b)}), decode(b, 8, 7)) << b;
    }
  }
}
TEST(Numeric, EveryValueSurvivesARoundTrip) {
  for (unsigned b = 0; b < 65536; ++b) {
    const Bf16 bf{static_cast<std::uint16_t>(b)};
    const F16 h{static_cast<std::uint16_t>(b)};
    const E4m3 e{static_cast<std::uint8_t>(b)};
    ASSERT_TRUE(std::isnan(to_float(bf)) || to_bf16(to_float(bf)).bits == b) << b;
    ASSERT_TRUE(std::isnan(to_float(h)) || to_f16(to_float(h)).bits == b) << b;
    ASSERT_TRUE(std::isnan(to_float(e)) || to_e4m3(to_float(e)).bits == e.bits) << b;
  }
}

/// No neighbour of the rounded value is nearer; on a tie the even one was taken.
template <class T, class Bits>
void expect_nearest(float f, T rounded, T (*make)(Bits)) {
  const double r = to_float(rounded);
  for (int step : {-1, 1}) {
    const T other = make(static_cast<Bits>(rounded.bits + step));
    const double o = to_float(other);
    if (std::isnan(o) || (o < 0) != (r < 0)) continue;
    RC_ASSERT(std::abs(f - r) <= std::abs(f - o));
    if (std::abs(f - r) == std::abs(f - o)) RC_ASSERT(rounded.bits % 2 == 0);
  }
}
TEST(Numeric, RoundsToNearestEven) {
  EXPECT_TRUE(rc::check([] {
    const float f = static_cast<float>(*rc::gen::inRange(-4'000'000, 4'000'000)) / 9973.0f;
    expect_nearest<Bf16, std::uint16_t>(f, to_bf16(f), [](std::uint16_t b) { return Bf16{b}; });
    expect_nearest<F16, std::uint16_t>(f, to_f16(f), [](std::uint16_t b) { return F16{b}; });
    expect_nearest<E4m3, std::uint8_t>(f, to_e4m3(f), [](std::uint8_t b) { return E4m3{b}; });
  }));
}
TEST(Numeric, E4m3Saturates) {
  EXPECT_EQ(to_e4m3(1e9f).bits, 0x7e);
  EXPECT_EQ(to_e4m3(-449.0f).bits, 0xfe);
  EXPECT_EQ(to_e4m3(NAN).bits & 0x7f, 0x7f);
}

TEST(Numeric, PermuteIndexIsABijection) {
  for (std::uint64_t n : {1u, 2u, 3u, 5u, 16u, 17u, 255u, 1000u}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t p = permute_index(99, i, n);
      ASSERT_LT(p, n);
      seen.insert(p);
    }
    EXPECT_EQ(seen.size(), n);
  }
}
TEST(Numeric, NormalHasTheMomentsOfANormal) {
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kCount = 200'000;
  for (int i = 0; i < kCount; ++i) {
    const double z = random_normal(5, static_cast<std::uint64_t>(i));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(fourth / kCount, 3, 0.15);
}
TEST(Numeric, LogAndCosineAreAccurate) {
  for (int i = 1; i < 10'000; ++i) {
    const float u = static_cast<float>(i) / 10'000.0f;
    EXPECT_NEAR(exact_log(u), std::log(static_cast<double>(u)), 2e-6 * (1 - std::log(u)));
    EXPECT_NEAR(exact_cos_turn(u), std::cos(2 * M_PI * static_cast<double>(u)), 2e-6);
  }
}

}  // namespace
}  // namespace assay
