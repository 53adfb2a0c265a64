// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "judge/problem/ops.h"

namespace assay::problems::topk {

/// Position in the order of all floats without NaN; -0 comes just before +0.
ASSAY_HD inline std::uint32_t rank_of(float v) {
  const std::uint32_t u = float_bits(v);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}
ASSAY_HD inline float value_of(std::uint32_t rank) {
  return bits_float(rank & 0x80000000u ? rank ^ 0x80000000u : ~rank);
}

struct Ops {
  /// The k-th largest of each row is found by its bits, from the top: 32 counts of the row. What is
  /// larger is gathered and sorted by counting; the rest of the k are equal to it.
  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const std::int64_t B = a.shape.axis("B"), n = a.shape.axis("n"), k = a.shape.axis("k");
    const float* x = a.inputs[0].template as<float>();
    float* values = a.expected[0].template as<float>();
    const std::int64_t P = (n + kPart - 1) / kPart;  // parts of a row
    auto* threshold = static_cast<std::uint32_t*>(d.scratch((B + B * P + B * k) * 4));
    std::uint32_t* count = threshold + B;                    // per part
    auto* larger = reinterpret_cast<float*>(count + B * P);  // at most k - 1 per row

    d.for_each(
        B, ASSAY_LAMBDA(std::int64_t b) { threshold[b] = 0; });
    for (int bit = 31; bit >= 0; --bit) {
      const std::uint32_t step = 1u << bit;
      d.for_each(
          B * P, ASSAY_LAMBDA(std::int64_t i) {
            count[i] = count_part(x, n, i / P, i % P, threshold[i / P] | step);
          });
      d.for_each(
          B, ASSAY_LAMBDA(std::int64_t b) {
            std::int64_t total = 0;
            for (std::int64_t p = 0; p < P; ++p) total += count[b * P + p];
            if (total >= k) threshold[b] |= step;
          });
    }
    d.for_each(
        B * P, ASSAY_LAMBDA(std::int64_t i) {
          const std::uint32_t t = threshold[i / P];
          count[i] = t == 0xffffffffu ? 0 : count_part(x, n, i / P, i % P, t + 1);
        });
    d.for_each(
        B * P, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t b = i / P, p = i % P;
          std::int64_t at = b * k;
          for (std::int64_t q = 0; q < p; ++q) at += count[b * P + q];
          const std::int64_t end = (p + 1) * kPart < n ? (p + 1) * kPart : n;
          for (std::int64_t j = p * kPart; j < end; ++j)
            if (rank_of(x[b * n + j]) > threshold[b]) larger[at++] = x[b * n + j];
        });
    d.for_each(
        B * k, ASSAY_LAMBDA(std::int64_t i) { values[i] = value_of(threshold[i / k]); });
    d.for_each(
        B * k, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t b = i / k, j = i % k;
          std::int64_t found = 0;
          for (std::int64_t p = 0; p < P; ++p) found += count[b * P + p];
          if (j >= found) return;
          const std::uint32_t mine = rank_of(larger[b * k + j]);
          std::int64_t place = 0;
          for (std::int64_t o = 0; o < found; ++o) {
            const std::uint32_t other = rank_of(larger[b * k + o]);
            place += other > mine || (other == mine && o < j);
          }
          values[b * k + place] = larger[b * k + j];
        });
  }

  /// The elements of each row change places and are doubled or halved: so are the k largest.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const std::int64_t n = a.shape.axis("n"), k = a.shape.axis("k");
    const float *x0 = a.base_inputs[0].template as<float>(),
                *v0 = a.base_expected[0].template as<float>();
    float *x = a.inputs[0].template as<float>(), *v = a.expected[0].template as<float>();
    const std::uint64_t key = a.key;
    d.for_each(
        a.inputs[0].size(), ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t b = i / n, j = i % n;
          const auto from = static_cast<std::int64_t>(
              key == 0
                  ? static_cast<std::uint64_t>(j)
                  : permute_index(key + static_cast<std::uint64_t>(b),
                                  static_cast<std::uint64_t>(j), static_cast<std::uint64_t>(n)));
          x[i] = x0[b * n + from] * factor(key, b);
        });
    d.for_each(
        a.expected[0].size(), ASSAY_LAMBDA(std::int64_t i) { v[i] = v0[i] * factor(key, i / k); });
  }
  static std::int64_t rekey_capacity(const Shape&) { return 64; }

  template <class D>
  static void structure(D& d, const StructureArgs& a) {
    const std::int64_t n = a.shape.axis("n");
    float* x = a.inputs[0].template as<float>();
    const std::int64_t size = a.inputs[0].size();
    const std::uint64_t seed = a.seed;
    if (a.name == "duplicates") {
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) { x[i] = floorf(x[i] * 4.0f) * 0.25f; });
    } else if (a.name == "all_equal") {
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) {
            x[i] = random_uniform(seed, static_cast<std::uint64_t>(i / n), -2.0f, 2.0f);
          });
    } else if (a.name == "specials") {
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) {
            x[i] = special(random_bits(seed, static_cast<std::uint64_t>(i)), x[i]);
          });
    } else if (a.name == "sorted_up") {
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) { x[i] = ramp(i % n, n); });
    } else if (a.name == "sorted_down") {
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) { x[i] = ramp(n - 1 - i % n, n); });
    } else if (a.name == "clustered") {  // all the largest in one stretch of each row
      const std::int64_t k = a.shape.axis("k"), length = 2 * k < n ? 2 * k : n;
      d.for_each(
          size, ASSAY_LAMBDA(std::int64_t i) {
            const auto room = static_cast<std::uint32_t>(n - length + 1);
            const auto start = static_cast<std::int64_t>(
                random_below(seed, static_cast<std::uint64_t>(i / n), room));
            if (i % n >= start && i % n < start + length) x[i] += 16.0f;
          });
    }
  }

  template <class D>
  static CompareStats compare(D& d, const CompareArgs& a) {
    const std::int64_t n = a.shape.axis("n"), k = a.shape.axis("k");
    const float *x = a.inputs[0].template as<float>(),
                *expected = a.expected[0].template as<float>();
    if (a.output == 0) {
      const float* got = a.outputs[0].template as<float>();
      return d.tally(
          a.expected[0].size(), ASSAY_LAMBDA(std::int64_t i)->Sample {
            return {expected[i], got[i], 0.0f, !(got[i] == expected[i]), false};
          });
    }
    // An index must be in range, not given before in its row, and point at the value of its place.
    const std::int64_t* index = a.outputs[1].template as<std::int64_t>();
    return d.tally(
        a.expected[0].size(), ASSAY_LAMBDA(std::int64_t i)->Sample {
          const std::int64_t row = i / k * k, at = index[i];
          if (at < 0 || at >= n) return {expected[i], bits_float(0x7fc00000u), 0.0f, true, false};
          bool twice = false;
          for (std::int64_t j = row; j < i; ++j) twice = twice || index[j] == at;
          const float v = x[i / k * n + at];
          return {expected[i], v, 0.0f, twice || !(v == expected[i]), false};
        });
  }

 private:
  static constexpr std::int64_t kPart = 512;

  ASSAY_HD static std::uint32_t count_part(const float* x, std::int64_t n, std::int64_t row,
                                           std::int64_t part, std::uint32_t at_least) {
    const std::int64_t end = (part + 1) * kPart < n ? (part + 1) * kPart : n;
    std::uint32_t c = 0;
    for (std::int64_t j = part * kPart; j < end; ++j) c += rank_of(x[row * n + j]) >= at_least;
    return c;
  }
  ASSAY_HD static float ramp(std::int64_t i, std::int64_t n) {
    return static_cast<float>(i) / static_cast<float>(n) - 0.5f;
  }
  ASSAY_HD static float factor(std::uint64_t key, std::int64_t row) {
    if (key == 0) return 1.0f;
    const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(row)) % 3;
    return bits == 0 ? 0.5f : bits == 1 ? 1.0f : 2.0f;
  }
  /// Mostly -infinity, zeros of both signs and denormals of both signs, so that they reach the top.
  ASSAY_HD static float special(std::uint64_t bits, float other) {
    switch (bits % 8) {
      case 0:
        return 0.0f;
      case 1:
        return -0.0f;
      case 2:
      case 3:
        return bits_float(static_cast<std::uint32_t>(bits >> 41) | 1u);  // below 2^-126
      case 4:
        return -bits_float(static_cast<std::uint32_t>(bits >> 41) | 1u);
      case 5:
        return -fabsf(other);
      default:
        return bits_float(0xff800000u);
    }
  }
};

}  // namespace assay::problems::topk
