// SPDX-License-Identifier: Apache-2.0
// Number formats and the counter-based generator, bit for bit the same on the CPU and on the GPU.
//
// Everything here uses only operations that IEEE 754 rounds exactly (+ - * / sqrt and integers),
// and the translation units that include it are compiled without contraction into fused
// multiply-adds
// (-ffp-contract=off, -fmad=false). Where a fused operation is wanted it is written fma().
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "wire/digest.h"  // ASSAY_HD, mix64

namespace assay {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};
struct E4m3 {
  std::uint8_t bits;
};

ASSAY_HD inline std::uint32_t float_bits(float f) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(f);
#else
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
#endif
}
ASSAY_HD inline float bits_float(std::uint32_t u) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(u);
#else
  float f;
  std::memcpy(&f, &u, 4);
  return f;
#endif
}

/// `v` rounded to `bits` (0 to 22) stored bits of mantissa, ties to even; NaN stays NaN.
ASSAY_HD inline float keep_mantissa(float v, int bits) {
  const std::uint32_t u = float_bits(v), drop = 23u - static_cast<std::uint32_t>(bits);
  if ((u & 0x7f800000u) == 0x7f800000u) return v;
  const std::uint32_t half = (1u << (drop - 1)) - 1u + ((u >> drop) & 1u);
  return bits_float((u + half) >> drop << drop);
}

// ---- bfloat16: round to nearest even; NaN stays NaN ------------------------------------------
ASSAY_HD inline float to_float(Bf16 v) {
  return bits_float(static_cast<std::uint32_t>(v.bits) << 16);
}
ASSAY_HD inline Bf16 to_bf16(float f) {
  std::uint32_t u = float_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return Bf16{static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  u += 0x7fffu + ((u >> 16) & 1u);
  return Bf16{static_cast<std::uint16_t>(u >> 16)};
}

// ---- binary16: round to nearest even -----------------------------------------------------------
ASSAY_HD inline float to_float(F16 v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000u) << 16;
  const std::uint32_t exp = (v.bits >> 10) & 31u;
  const std::uint32_t man = v.bits & 0x3ffu;
  if (exp == 31u) return bits_float(sign | 0x7f800000u | (man << 13));
  if (exp != 0u) return bits_float(sign | ((exp + 112u) << 23) | (man << 13));
  const float m = static_cast<float>(man) * 5.9604644775390625e-8f;  // 2^-24
  return sign ? -m : m;
}
ASSAY_HD inline F16 to_f16(float f) {
  const std::uint32_t u = float_bits(f);
  const std::uint16_t sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return F16{static_cast<std::uint16_t>(sign | 0x7e00u)};
  if (a >= 0x477ff000u) return F16{static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (a <
      0x38800000u) {  // subnormal: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
    const float m = bits_float(a) + 0.5f;
    return F16{static_cast<std::uint16_t>(sign | (float_bits(m) - 0x3f000000u))};
  }
  const std::uint32_t r = a + 0xfffu + ((a >> 13) & 1u);
  return F16{static_cast<std::uint16_t>(sign | ((r - 0x38000000u) >> 13))};
}

// ---- e4m3 (fn): round to nearest even, saturating at 448; NaN = 0x7f ---------------------------
ASSAY_HD inline float to_float(E4m3 v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x80u) << 24;
  const std::uint32_t exp = (v.bits >> 3) & 15u;
  const std::uint32_t man = v.bits & 7u;
  if ((v.bits & 0x7fu) == 0x7fu) return bits_float(sign | 0x7fc00000u);
  if (exp != 0u) return bits_float(sign | ((exp + 120u) << 23) | (man << 20));
  const float m = static_cast<float>(man) * 0.001953125f;  // 2^-9
  return sign ? -m : m;
}
ASSAY_HD inline E4m3 to_e4m3(float f) {
  const std::uint32_t u = float_bits(f);
  const std::uint8_t sign = static_cast<std::uint8_t>((u >> 24) & 0x80u);
  const std::uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return E4m3{static_cast<std::uint8_t>(sign | 0x7fu)};
  if (a >= 0x43e00000u) return E4m3{static_cast<std::uint8_t>(sign | 0x7eu)};  // >= 448
  if (a < 0x3c800000u) {  // below 2^-6: multiples of 2^-9; adding 2^14 rounds to them
    const float m = bits_float(a) + 16384.0f;
    return E4m3{static_cast<std::uint8_t>(sign | (float_bits(m) - 0x46800000u))};
  }
  const std::uint32_t r = a + 0x7ffffu + ((a >> 20) & 1u);
  return E4m3{static_cast<std::uint8_t>(sign | ((r - 0x3c000000u) >> 20))};
}

// ---- counter-based generator -------------------------------------------------------------------
/// 64 random bits for (seed, counter).
ASSAY_HD inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  return wire::mix64(wire::mix64(counter + 0x9e3779b97f4a7c15ULL) ^ seed) + seed;
}
/// Uniform in (0, 1), from the top 23 bits of `bits`, never 0 or 1.
ASSAY_HD inline float unit_float(std::uint32_t bits) {
  return (static_cast<float>(bits >> 9) + 0.5f) * 1.1920928955078125e-7f;  // 2^-23
}

/// Natural logarithm of a normal positive float, about 1e-7 relative, exactly reproducible.
ASSAY_HD inline float exact_log(float x) {
  const std::uint32_t u = float_bits(x);
  int e = static_cast<int>(u >> 23) - 127;
  float m = bits_float((u & 0x7fffffu) | 0x3f800000u);  // [1, 2)
  if (m > 1.41421356f) {
    m = m * 0.5f;
    e += 1;
  }
  const float t = (m - 1.0f) / (m + 1.0f);  // log m = 2 atanh t
  const float s = t * t;
  float p = 0.11111111f;
  p = p * s + 0.14285715f;
  p = p * s + 0.2f;
  p = p * s + 0.33333334f;
  p = p * s + 1.0f;
  return static_cast<float>(e) * 0.69314718f + 2.0f * t * p;
}
/// cos(2 pi u) for u in [0, 1), about 1e-6 absolute, exactly reproducible.
ASSAY_HD inline float exact_cos_turn(float u) {
  float x = u - 0.5f;    // cos(2 pi u) = -cos(2 pi x), x in [-0.5, 0.5)
  if (x < 0.0f) x = -x;  // even: [0, 0.5]
  const bool far = x > 0.25f;
  if (far) x = 0.5f - x;  // cos(pi - a) = -cos a: [0, 0.25]
  const float a = x * 6.2831855f;
  const float s = a * a;
  float p = 2.0876757e-9f;  // Taylor to x^12: error < 1e-8 on [0, pi/2]
  p = p * s - 2.7557319e-7f;
  p = p * s + 2.4801587e-5f;
  p = p * s - 1.3888889e-3f;
  p = p * s + 4.1666668e-2f;
  p = p * s - 0.5f;
  p = p * s + 1.0f;
  return far ? p : -p;
}
/// Standard normal for (seed, counter): Box and Muller, |z| < 5.8.
ASSAY_HD inline float random_normal(std::uint64_t seed, std::uint64_t counter) {
  const std::uint64_t b = random_bits(seed, counter);
  const float radius = sqrtf(-2.0f * exact_log(unit_float(static_cast<std::uint32_t>(b >> 32))));
  return radius * exact_cos_turn(unit_float(static_cast<std::uint32_t>(b)));
}
/// Uniform in (lo, hi).
ASSAY_HD inline float random_uniform(std::uint64_t seed, std::uint64_t counter, float lo,
                                     float hi) {
  return lo + (hi - lo) * unit_float(static_cast<std::uint32_t>(random_bits(seed, counter) >> 32));
}
/// Uniform in 0 .. n-1 (n > 0), by multiplication; bias below n / 2^32.
ASSAY_HD inline std::uint64_t random_below(std::uint64_t seed, std::uint64_t counter,
                                           std::uint32_t n) {
  return ((random_bits(seed, counter) >> 32) * n) >> 32;
}

/// A pseudo-random permutation of 0 .. n-1 that can be evaluated at one point: a Feistel network
/// over the next even power of two, walked until it lands inside. Exact bijection for every n >= 1.
ASSAY_HD inline std::uint64_t permute_index(std::uint64_t seed, std::uint64_t i, std::uint64_t n) {
  int half = 1;
  while ((1ULL << (2 * half)) < n) ++half;
  const std::uint64_t mask = (1ULL << half) - 1;
  do {
    std::uint64_t l = i >> half, r = i & mask;
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t f = wire::mix64(r + seed + 0x632be59bd9b4e019ULL * (round + 1)) & mask;
      const std::uint64_t t = l ^ f;
      l = r;
      r = t;
    }
    i = (l << half) | r;
  } while (i >= n);
  return i;
}

}  // namespace assay
