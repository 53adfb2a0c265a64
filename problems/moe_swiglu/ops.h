// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "judge/problem/ops.h"

namespace assay::problems::moe_swiglu {

struct Ops {
  /// Balanced: the remainder goes to the first experts.
  template <class D>
  static void draw_inputs(D& d, const DrawArgs& a) {
    const std::int64_t E = a.shape.axis("E"), rows = rows_of(a.shape);
    auto* offsets = a.tensors[1].template as<std::int32_t>();
    d.for_each(
        E + 1, ASSAY_LAMBDA(std::int64_t e) {
          offsets[e] = static_cast<std::int32_t>(balanced(e, rows, E));
        });
  }

  /// Expert by expert and kChunk rows at a time: both products in fp32, silu in fp64.
  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const std::int64_t H = a.shape.axis("H"), I = a.shape.axis("I"), E = a.shape.axis("E");
    const Bf16 *gate = a.constants[0].template as<Bf16>(), *up = a.constants[1].template as<Bf16>();
    const Bf16* x = a.inputs[0].template as<Bf16>();
    float* out = a.expected[0].template as<float>();
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(E + 1));
    d.download(offsets.data(), a.inputs[1].data, (E + 1) * 4);
    auto* wide_gate = static_cast<float*>(d.scratch((2 * H * I + kChunk * H + 2 * kChunk * I) * 4));
    float *wide_up = wide_gate + H * I, *wide_x = wide_up + H * I;
    float *g = wide_x + kChunk * H, *u = g + kChunk * I;
    for (std::int64_t e = 0; e < E; ++e) {
      const std::int64_t end = offsets[static_cast<std::size_t>(e + 1)];
      std::int64_t first = offsets[static_cast<std::size_t>(e)];
      if (first < end)
        d.for_each(
            H * I, ASSAY_LAMBDA(std::int64_t i) {
              wide_gate[i] = to_float(gate[e * H * I + i]);
              wide_up[i] = to_float(up[e * H * I + i]);
            });
      for (; first < end; first += kChunk) {
        const std::int64_t rows = std::min(kChunk, end - first), from = first;
        d.for_each(
            rows * H, ASSAY_LAMBDA(std::int64_t i) { wide_x[i] = to_float(x[from * H + i]); });
        d.gemm_nn(rows, I, H, wide_x, wide_gate, g);
        d.gemm_nn(rows, I, H, wide_x, wide_up, u);
        d.for_each(
            rows * I, ASSAY_LAMBDA(std::int64_t i) {
              const double v = static_cast<double>(g[i]);
              out[from * I + i] =
                  static_cast<float>(v / (1.0 + exp(-v)) * static_cast<double>(u[i]));
            });
      }
    }
  }

  /// The rows of every expert change places, and so do those of the output.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const std::int64_t H = a.shape.axis("H"), I = a.shape.axis("I"), E = a.shape.axis("E");
    const std::int64_t rows = rows_of(a.shape);
    const std::uint64_t key = a.key;
    const Bf16* x0 = a.base_inputs[0].template as<Bf16>();
    const auto* offsets0 = a.base_inputs[1].template as<std::int32_t>();
    const float* out0 = a.base_expected[0].template as<float>();
    Bf16* x = a.inputs[0].template as<Bf16>();
    auto* offsets = a.inputs[1].template as<std::int32_t>();
    float* out = a.expected[0].template as<float>();
    auto* source = static_cast<std::int32_t*>(d.scratch(rows * 4));
    d.for_each(
        rows, ASSAY_LAMBDA(std::int64_t r) {
          std::int64_t low = 0, high = E;  // offsets0[low] <= r < offsets0[high]
          while (high - low > 1) {
            const std::int64_t middle = (low + high) / 2;
            (offsets0[middle] <= r ? low : high) = middle;
          }
          const std::int64_t first = offsets0[low], count = offsets0[high] - first;
          source[r] = static_cast<std::int32_t>(
              key == 0 ? r
                       : first + static_cast<std::int64_t>(permute_index(
                                     wire::mix64(key + static_cast<std::uint64_t>(low)),
                                     static_cast<std::uint64_t>(r - first),
                                     static_cast<std::uint64_t>(count))));
        });
    d.for_each(
        rows * H, ASSAY_LAMBDA(std::int64_t i) { x[i] = x0[source[i / H] * H + i % H]; });
    d.for_each(
        rows * I, ASSAY_LAMBDA(std::int64_t i) { out[i] = out0[source[i / I] * I + i % I]; });
    d.for_each(
        E + 1, ASSAY_LAMBDA(std::int64_t e) { offsets[e] = offsets0[e]; });
  }
  static std::int64_t rekey_capacity(const Shape& s) {
    return rows_of(s) / s.axis("E") >= 8 ? 64 : 1;
  }

  template <class D>
  static void structure(D& d, const StructureArgs& a) {
    const std::int64_t E = a.shape.axis("E"), rows = rows_of(a.shape);
    auto* offsets = a.inputs[1].template as<std::int32_t>();
    const std::uint64_t seed = a.seed;
    if (a.name == "ragged") {
      d.for_each(
          E + 1, ASSAY_LAMBDA(std::int64_t e) {
            std::uint64_t before = 0, all = 0;
            for (std::int64_t i = 0; i < E; ++i) {
              const std::uint64_t weight = random_below(seed, static_cast<std::uint64_t>(i), 1000);
              all += weight;
              if (i < e) before += weight;
            }
            offsets[e] = static_cast<std::int32_t>(
                e == E ? static_cast<std::uint64_t>(rows)
                       : before * static_cast<std::uint64_t>(rows) / (all > 0 ? all : 1));
          });
    } else if (a.name == "empty_experts") {  // every other one, the first among them
      d.for_each(
          E + 1, ASSAY_LAMBDA(std::int64_t e) {
            offsets[e] =
                static_cast<std::int32_t>(e == E ? rows : balanced(e / 2, rows, (E + 1) / 2));
          });
    } else if (a.name == "one_expert") {
      d.for_each(
          E + 1, ASSAY_LAMBDA(std::int64_t e) {
            offsets[e] = static_cast<std::int32_t>(e <= E / 2 ? 0 : rows);
          });
    }
  }

 private:
  static constexpr std::int64_t kChunk = 4096;

  static std::int64_t rows_of(const Shape& s) { return s.axis("T") * s.axis("K"); }
  ASSAY_HD static std::int64_t balanced(std::int64_t e, std::int64_t rows, std::int64_t experts) {
    const std::int64_t extra = rows % experts;
    return e * (rows / experts) + (e < extra ? e : extra);
  }
};

}  // namespace assay::problems::moe_swiglu
