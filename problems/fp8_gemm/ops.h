// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "judge/problem/ops.h"

namespace assay::problems::fp8_gemm {

struct Ops {
  /// Row n of W ~ normal(0.02), scaled so that its largest magnitude becomes 448, rounded to e4m3.
  template <class D>
  static void draw_constants(D& d, const DrawArgs& a) {
    const Tensor weight = a.tensors[0], weight_scale = a.tensors[1];
    const std::int64_t N = a.shape.axis("N"), K = a.shape.axis("K");
    const std::uint64_t seed = a.seed;
    d.for_each(
        N, ASSAY_LAMBDA(std::int64_t n) {
          const auto first = static_cast<std::uint64_t>(n * K);
          float most = 0;
          for (std::int64_t k = 0; k < K; ++k) {
            const float w = random_normal(seed, first + static_cast<std::uint64_t>(k));
            most = w > most ? w : -w > most ? -w : most;
          }
          const float drawn = most * 0.02f / 448.0f;
          weight_scale.as<float>()[n] = drawn > 1e-12f ? drawn : 1e-12f;
        });
    d.for_each(
        N * K, ASSAY_LAMBDA(std::int64_t i) {
          const float w = 0.02f * random_normal(seed, static_cast<std::uint64_t>(i));
          weight.as<E4m3>()[i] = to_e4m3(w / weight_scale.as<float>()[i / K]);
        });
  }

  template <class D>
  static void derive(D& d, const DeriveArgs& a) {
    const Tensor weight = a.constants[0], wide = a.derived[0];
    d.for_each(
        wide.size(),
        ASSAY_LAMBDA(std::int64_t i) { wide.as<float>()[i] = to_float(weight.as<E4m3>()[i]); });
  }

  /// fp32 throughout: products of two e4m3 are exact in fp32, and nothing is rounded to bf16.
  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const std::int64_t M = a.shape.axis("M"), N = a.shape.axis("N"), K = a.shape.axis("K");
    const Tensor x = a.inputs[0], weight_scale = a.constants[1], y = a.expected[0];
    float* wide = static_cast<float*>(d.scratch(M * K * 4));
    d.for_each(
        M * K, ASSAY_LAMBDA(std::int64_t i) { wide[i] = to_float(x.as<E4m3>()[i]); });
    d.gemm_nt(M, N, K, wide, a.derived[0].template as<float>(), y.as<float>());
    d.for_each(
        M * N,
        ASSAY_LAMBDA(std::int64_t i) { y.as<float>()[i] *= weight_scale.as<float>()[i % N]; });
  }

  /// Rows of x change places and signs: rows of y do the same, exactly.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const std::int64_t M = a.shape.axis("M"), N = a.shape.axis("N"), K = a.shape.axis("K");
    const Tensor x0 = a.base_inputs[0], y0 = a.base_expected[0], x = a.inputs[0], y = a.expected[0];
    const std::uint64_t key = a.key;
    d.for_each(
        M * K, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t m = i / K;
          const std::uint8_t bits = x0.as<E4m3>()[source_row(key, m, M) * K + i % K].bits;
          x.as<E4m3>()[i] = E4m3{static_cast<std::uint8_t>(bits ^ (flips(key, m) ? 0x80 : 0))};
        });
    d.for_each(
        M * N, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t m = i / N;
          const float v = y0.as<float>()[source_row(key, m, M) * N + i % N];
          y.as<float>()[i] = flips(key, m) ? -v : v;
        });
  }
  /// M! orders and 2^M signs.
  static std::int64_t rekey_capacity(const Shape& s) { return s.axis("M") >= 16 ? 64 : 1; }

 private:
  ASSAY_HD static std::int64_t source_row(std::uint64_t key, std::int64_t m, std::int64_t M) {
    if (key == 0) return m;
    return static_cast<std::int64_t>(
        permute_index(key, static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(M)));
  }
  ASSAY_HD static bool flips(std::uint64_t key, std::int64_t m) {
    return key != 0 && (random_bits(key, static_cast<std::uint64_t>(m)) & 1) != 0;
  }
};

}  // namespace assay::problems::fp8_gemm
