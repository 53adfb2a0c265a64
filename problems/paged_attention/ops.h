// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "judge/problem/ops.h"

namespace assay::problems::paged_attention {

/// The sizes, and where things are.
struct Layout {
  std::int64_t B, Hq, Hkv, D, L, page, pages, pool;

  explicit Layout(const Shape& s)
      : B(s.axis("B")),
        Hq(s.axis("Hq")),
        Hkv(s.axis("Hkv")),
        D(s.axis("D")),
        L(s.axis("L")),
        page(s.axis("page")),
        pages((L + page - 1) / page),
        pool(B * pages + 8 > 64 ? B * pages + 8 : 64) {}

  /// Of the K row of head g in slot t of physical page p; V follows after D elements.
  ASSAY_HD std::int64_t row(std::int64_t p, std::int64_t t, std::int64_t g) const {
    return ((p * page + t) * Hkv + g) * 2 * D;
  }
  /// Of the K row of token j of sequence b.
  ASSAY_HD std::int64_t row_of(const std::int32_t* table, std::int64_t b, std::int64_t j,
                               std::int64_t g) const {
    return row(table[b * pages + j / page], j % page, g);
  }
};

struct Ops {
  /// Pages of a pool in random order; every sequence as long as the shape says.
  template <class D>
  static void draw_inputs(D& d, const DrawArgs& a) {
    const Layout l(a.shape);
    auto* table = a.tensors[2].template as<std::int32_t>();
    auto* lengths = a.tensors[3].template as<std::int32_t>();
    const std::uint64_t seed = a.seed;
    d.for_each(
        l.B * l.pages, ASSAY_LAMBDA(std::int64_t i) {
          table[i] = static_cast<std::int32_t>(permute_index(seed, static_cast<std::uint64_t>(i),
                                                             static_cast<std::uint64_t>(l.pool)));
        });
    d.for_each(
        l.B, ASSAY_LAMBDA(std::int64_t b) { lengths[b] = static_cast<std::int32_t>(l.L); });
  }

  /// In parts of kPart tokens, each with a maximum of its own, then merged. Scores in fp32, sums
  /// over tokens in fp64.
  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const Layout l(a.shape);
    const Bf16 *query = a.inputs[0].template as<Bf16>(), *cache = a.inputs[1].template as<Bf16>();
    const auto *table = a.inputs[2].template as<std::int32_t>(),
               *lengths = a.inputs[3].template as<std::int32_t>();
    float* out = a.expected[0].template as<float>();
    const std::int64_t heads = l.B * l.Hq, parts = (l.L + kPart - 1) / kPart, group = l.Hq / l.Hkv;
    auto* sums =
        static_cast<double*>(d.scratch(heads * parts * (l.D + 1) * 8 + heads * (l.L + parts) * 4));
    double* weighted = sums + heads * parts;                                  // [heads, parts, D]
    auto* scores = reinterpret_cast<float*>(weighted + heads * parts * l.D);  // [heads, L]
    float* highest = scores + heads * l.L;                                    // [heads, parts]
    const float scale = 1.0f / sqrtf(static_cast<float>(l.D));

    d.for_each(
        heads * l.L, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t h = i / l.L, b = h / l.Hq, j = i % l.L;
          if (j >= lengths[b]) return;
          const Bf16* k = cache + l.row_of(table, b, j, h % l.Hq / group);
          float dot = 0;
          for (std::int64_t c = 0; c < l.D; ++c)
            dot += to_float(query[h * l.D + c]) * to_float(k[c]);
          scores[i] = dot * scale;
        });
    d.for_each(
        heads * parts, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t h = i / parts, end = end_of(i % parts, lengths[h / l.Hq]);
          float most = -INFINITY;
          for (std::int64_t j = i % parts * kPart; j < end; ++j)
            most = fmaxf(most, scores[h * l.L + j]);
          double sum = 0;
          for (std::int64_t j = i % parts * kPart; j < end; ++j)
            sum += exp(static_cast<double>(scores[h * l.L + j] - most));
          highest[i] = most;
          sums[i] = sum;
        });
    d.for_each(
        heads * parts * l.D, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t part = i / l.D % parts, h = i / l.D / parts, b = h / l.Hq, c = i % l.D;
          const std::int64_t end = end_of(part, lengths[b]);
          double sum = 0;
          for (std::int64_t j = part * kPart; j < end; ++j)
            sum += exp(static_cast<double>(scores[h * l.L + j] - highest[i / l.D])) *
                   static_cast<double>(
                       to_float(cache[l.row_of(table, b, j, h % l.Hq / group) + l.D + c]));
          weighted[i] = sum;
        });
    d.for_each(
        heads * l.D, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t h = i / l.D, c = i % l.D;
          float most = -INFINITY;
          for (std::int64_t p = 0; p < parts; ++p) most = fmaxf(most, highest[h * parts + p]);
          double up = 0, down = 0;
          for (std::int64_t p = 0; p < parts; ++p) {
            const double share = exp(static_cast<double>(highest[h * parts + p] - most));
            down += share * sums[h * parts + p];
            up += share * weighted[(h * parts + p) * l.D + c];
          }
          out[i] = static_cast<float>(up / down);
        });
  }

  /// Sequences, groups of heads and physical pages change places; per group of heads and column, q
  /// and k are multiplied by c and 1/c, v by another, all powers of two with a sign: the output
  /// moves and is multiplied like v, exactly.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const Layout l(a.shape);
    const std::int64_t group = l.Hq / l.Hkv;
    const std::uint64_t key = a.key;
    const Bf16 *q0 = a.base_inputs[0].template as<Bf16>(),
               *kv0 = a.base_inputs[1].template as<Bf16>();
    const auto *table0 = a.base_inputs[2].template as<std::int32_t>(),
               *lengths0 = a.base_inputs[3].template as<std::int32_t>();
    const float* out0 = a.base_expected[0].template as<float>();
    Bf16 *q = a.inputs[0].template as<Bf16>(), *kv = a.inputs[1].template as<Bf16>();
    auto *table = a.inputs[2].template as<std::int32_t>(),
         *lengths = a.inputs[3].template as<std::int32_t>();
    float* out = a.expected[0].template as<float>();

    d.for_each(
        l.B * l.Hq * l.D, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t h = i / l.D % l.Hq, g = h / group, c = i % l.D;
          const std::int64_t from = (moved(key, 1, i / l.D / l.Hq, l.B) * l.Hq +
                                     moved(key, 2, g, l.Hkv) * group + h % group) *
                                        l.D +
                                    c;
          q[i] = to_bf16(to_float(q0[from]) * factor(key, 4, g * l.D + c));
          out[i] = out0[from] * factor(key, 5, g * l.D + c);
        });
    d.for_each(
        l.pool * l.page * l.Hkv * 2 * l.D, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t c = i % (2 * l.D), g = i / (2 * l.D) % l.Hkv;
          const std::int64_t t = i / (2 * l.D * l.Hkv) % l.page, p = i / (2 * l.D * l.Hkv * l.page);
          const float by =
              c < l.D ? 1.0f / factor(key, 4, g * l.D + c) : factor(key, 5, g * l.D + c - l.D);
          kv[l.row(moved(key, 3, p, l.pool), t, g) + c] =
              to_bf16(to_float(kv0[l.row(p, t, moved(key, 2, g, l.Hkv)) + c]) * by);
        });
    d.for_each(
        l.B * l.pages, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t from = moved(key, 1, i / l.pages, l.B) * l.pages + i % l.pages;
          table[i] = static_cast<std::int32_t>(moved(key, 3, table0[from], l.pool));
        });
    d.for_each(
        l.B, ASSAY_LAMBDA(std::int64_t b) { lengths[b] = lengths0[moved(key, 1, b, l.B)]; });
  }
  static std::int64_t rekey_capacity(const Shape&) { return 64; }

  template <class D>
  static void structure(D& d, const StructureArgs& a) {
    const Layout l(a.shape);
    Bf16* cache = a.inputs[1].template as<Bf16>();
    auto *table = a.inputs[2].template as<std::int32_t>(),
         *lengths = a.inputs[3].template as<std::int32_t>();
    const std::uint64_t seed = a.seed;
    if (a.name == "ragged" ||
        a.name == "garbage") {  // one of a single token, the others of any length
      d.for_each(
          l.B, ASSAY_LAMBDA(std::int64_t b) {
            lengths[b] = b == 0 && l.B > 1 ? 1
                                           : 1 + static_cast<std::int32_t>(random_below(
                                                     seed, static_cast<std::uint64_t>(b),
                                                     static_cast<std::uint32_t>(l.L)));
          });
    }
    if (a.name == "garbage") {  // NaN wherever no sequence has a token
      auto* used = static_cast<unsigned char*>(d.scratch(l.pool * l.page));
      d.for_each(
          l.pool * l.page, ASSAY_LAMBDA(std::int64_t i) { used[i] = 0; });
      d.for_each(
          l.B * l.L, ASSAY_LAMBDA(std::int64_t i) {
            const std::int64_t b = i / l.L, j = i % l.L;
            if (j < lengths[b]) used[table[b * l.pages + j / l.page] * l.page + j % l.page] = 1;
          });
      d.for_each(
          l.pool * l.page * l.Hkv * 2 * l.D, ASSAY_LAMBDA(std::int64_t i) {
            if (!used[i / (l.Hkv * 2 * l.D)]) cache[i] = Bf16{0x7fc0};
          });
    } else if (a.name == "clustered") {  // a few neighbours outweigh all other tokens
      const Bf16* query = a.inputs[0].template as<Bf16>();
      const std::int64_t group = l.Hq / l.Hkv, near = l.L < 8 ? l.L : 8;
      d.for_each(
          l.B * near * l.Hkv * l.D, ASSAY_LAMBDA(std::int64_t i) {
            const std::int64_t c = i % l.D, g = i / l.D % l.Hkv, b = i / (l.D * l.Hkv * near);
            const auto start = static_cast<std::int64_t>(random_below(
                seed, static_cast<std::uint64_t>(b), static_cast<std::uint32_t>(l.L - near + 1)));
            const std::int64_t j = start + i / (l.D * l.Hkv) % near;
            cache[l.row_of(table, b, j, g) + c] =
                to_bf16(80.0f * to_float(query[(b * l.Hq + g * group) * l.D + c]));
          });
    } else if (a.name == "shared_page") {  // all sequences begin with the pages of the first
      const std::int64_t common = l.pages < 2 ? l.pages : 2;
      d.for_each(
          l.B * common, ASSAY_LAMBDA(std::int64_t i) {
            table[i / common * l.pages + i % common] = table[i % common];
          });
    }
  }

 private:
  static constexpr std::int64_t kPart = 128;

  ASSAY_HD static std::int64_t end_of(std::int64_t part, std::int64_t length) {
    return (part + 1) * kPart < length ? (part + 1) * kPart : length;
  }
  /// Where `i` of `n` goes, or comes from, in permutation number `which` of this key.
  ASSAY_HD static std::int64_t moved(std::uint64_t key, std::uint64_t which, std::int64_t i,
                                     std::int64_t n) {
    if (key == 0) return i;
    return static_cast<std::int64_t>(permute_index(
        wire::mix64(key + which), static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(n)));
  }
  /// One of +-1/2, +-1, +-2.
  ASSAY_HD static float factor(std::uint64_t key, std::uint64_t which, std::int64_t i) {
    if (key == 0) return 1.0f;
    const std::uint64_t bits = random_bits(wire::mix64(key + which), static_cast<std::uint64_t>(i));
    const float size = bits % 3 == 0 ? 0.5f : bits % 3 == 1 ? 1.0f : 2.0f;
    return (bits >> 32) & 1 ? -size : size;
  }
};

}  // namespace assay::problems::paged_attention
