// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "judge/problem/ops.h"

namespace assay::problems::w4a16_gemm {

inline constexpr std::int64_t kGroup = 128;  // along K

struct Ops {
  /// W ~ normal(0.02), quantised per group of 128 along K and column by its own minimum and
  /// maximum: scale = (max - min) / 15, zero = round(-min / scale) in 0 .. 15.
  template <class D>
  static void draw_constants(D& d, const DrawArgs& a) {
    const Tensor w_q = a.tensors[0], scales = a.tensors[1], zeros = a.tensors[2];
    const std::int64_t N = a.shape.axis("N"), K = a.shape.axis("K");
    const std::uint64_t seed = a.seed;
    d.for_each(
        K / kGroup * N, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t first = i / N * kGroup, n = i % N;
          float low = 0, high = 0;  // the range always holds zero
          for (std::int64_t k = first; k < first + kGroup; ++k) {
            const float w = weight(seed, k, n, N);
            low = w < low ? w : low;
            high = w > high ? w : high;
          }
          const Bf16 scale = to_bf16((high - low) / 15.0f);
          scales.as<Bf16>()[i] = scale;
          zeros.as<Bf16>()[i] = to_bf16(nibble(-low / to_float(scale)));
        });
    d.for_each(
        K / 2 * N, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t k = i / N * 2, n = i % N, group = k / kGroup * N + n;
          const float scale = to_float(scales.as<Bf16>()[group]);
          const float zero = to_float(zeros.as<Bf16>()[group]);
          const float even = nibble(weight(seed, k, n, N) / scale + zero);
          const float odd = nibble(weight(seed, k + 1, n, N) / scale + zero);
          w_q.as<std::uint8_t>()[i] =
              static_cast<std::uint8_t>(static_cast<int>(even) | static_cast<int>(odd) << 4);
        });
  }

  /// (q - zero) * scale is exact in fp32.
  template <class D>
  static void derive(D& d, const DeriveArgs& a) {
    const Tensor w_q = a.constants[0], scales = a.constants[1], zeros = a.constants[2];
    const Tensor wide = a.derived[0];
    const std::int64_t N = a.shape.axis("N");
    d.for_each(
        wide.size(), ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t k = i / N, n = i % N, group = k / kGroup * N + n;
          const int pair = w_q.as<std::uint8_t>()[k / 2 * N + n];
          const int q = k % 2 == 0 ? pair & 15 : pair >> 4;
          wide.as<float>()[i] = (static_cast<float>(q) - to_float(zeros.as<Bf16>()[group])) *
                                to_float(scales.as<Bf16>()[group]);
        });
  }

  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const std::int64_t M = a.shape.axis("M"), N = a.shape.axis("N"), K = a.shape.axis("K");
    const Tensor x = a.inputs[0], y = a.expected[0];
    float* wide = static_cast<float*>(d.scratch(M * K * 4));
    d.for_each(
        M * K, ASSAY_LAMBDA(std::int64_t i) { wide[i] = to_float(x.as<Bf16>()[i]); });
    d.gemm_nn(M, N, K, wide, a.derived[0].template as<float>(), y.as<float>());
  }

  /// Rows of x change places and signs and are doubled or halved: rows of y do the same, exactly.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const std::int64_t M = a.shape.axis("M"), N = a.shape.axis("N"), K = a.shape.axis("K");
    const Tensor x0 = a.base_inputs[0], y0 = a.base_expected[0], x = a.inputs[0], y = a.expected[0];
    const std::uint64_t key = a.key;
    d.for_each(
        M * K, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t m = i / K;
          const float v = to_float(x0.as<Bf16>()[source_row(key, m, M) * K + i % K]);
          x.as<Bf16>()[i] = to_bf16(v * factor(key, m));
        });
    d.for_each(
        M * N, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t m = i / N;
          y.as<float>()[i] = y0.as<float>()[source_row(key, m, M) * N + i % N] * factor(key, m);
        });
  }
  /// A single row has six variants only, so it is drawn anew every time.
  static std::int64_t rekey_capacity(const Shape& s) { return s.axis("M") >= 16 ? 64 : 1; }

 private:
  ASSAY_HD static float weight(std::uint64_t seed, std::int64_t k, std::int64_t n, std::int64_t N) {
    return 0.02f * random_normal(seed, static_cast<std::uint64_t>(k * N + n));
  }
  /// The nearest of 0 .. 15, halves up.
  ASSAY_HD static float nibble(float v) {
    const float r = floorf(v + 0.5f);
    return r < 0.0f ? 0.0f : r > 15.0f ? 15.0f : r;
  }
  ASSAY_HD static std::int64_t source_row(std::uint64_t key, std::int64_t m, std::int64_t M) {
    if (key == 0) return m;
    return static_cast<std::int64_t>(
        permute_index(key, static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(M)));
  }
  /// One of +-1/2, +-1, +-2.
  ASSAY_HD static float factor(std::uint64_t key, std::int64_t m) {
    if (key == 0) return 1.0f;
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(m));
    const float size = bits % 3 == 0 ? 0.5f : bits % 3 == 1 ? 1.0f : 2.0f;
    return (bits >> 32) & 1 ? -size : size;
  }
};

}  // namespace assay::problems::w4a16_gemm
