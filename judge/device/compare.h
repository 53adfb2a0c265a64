// SPDX-License-Identifier: Apache-2.0
// What one comparison of an output with the oracle found. Plain sums and extremes, so that it can
// be reduced in a fixed order: the same outputs give the same bits.
#pragma once

#include <cstdint>
#include <limits>

#include "judge/device/tensor.h"

namespace assay {

/// |got - expected| <= atol + rtol * |expected|
struct Tolerance {
  float atol = 0;
  float rtol = 0;
};

/// One element's contribution.
struct Sample {
  float expected = 0;
  float got = 0;
  float noise = 0;   ///< error an honest implementation makes here by rounding its output
  bool bad = false;  ///< outside the tolerance
  bool excused =
      false;      ///< the oracle's own decision is inside the noise here; either side accepted
  float use = 0;  ///< the error as a share of the tolerance, where there is one
};

struct CompareStats {
  std::int64_t count = 0;
  std::int64_t bad = 0;
  std::int64_t non_finite = 0;  ///< got is NaN or infinite where expected is finite; also in bad
  std::int64_t excused = 0;
  double max_abs = 0;  ///< largest |got - expected| over finite pairs
  double max_rel = 0;  ///< largest |got - expected| / |expected| where |expected| > 0
  double sum_sq_error = 0;
  double sum_sq_expected = 0;
  double sum_sq_noise = 0;
  std::int64_t worst_index = -1;  ///< flat index of the worst element: non-finite first, then
                                  ///< largest excess over the tolerance, lowest index on a tie
  float worst_expected = 0;
  float worst_got = 0;
  float max_use = 0;       ///< largest share of the tolerance used: at most 1 where nothing is bad,
                           ///< infinity where something is bad that no tolerance is about
  float worst_score = -1;  ///< infinity for non-finite; otherwise |error|, ranked bad first

  bool ok() const { return bad == 0; }
  double rms_error() const;
  double rms_expected() const;
  double rms_noise() const;
};

ASSAY_HD inline bool is_finite(float f) {
  return (float_bits(f) & 0x7f800000u) != 0x7f800000u;
}

ASSAY_HD inline void add(CompareStats& s, const Sample& v, std::int64_t index) {
  s.count += 1;
  s.bad += v.bad;
  s.excused += v.excused;
  const float use = v.bad ? (v.use > 1 ? v.use : bits_float(0x7f800000u)) : v.use < 1 ? v.use : 1;
  if (use > s.max_use) s.max_use = use;
  float score;
  if (!is_finite(v.got) && is_finite(v.expected)) {
    s.non_finite += 1;
    score = bits_float(0x7f800000u);
  } else if (!is_finite(v.expected)) {
    score = v.bad ? bits_float(0x7f7fffffu) : 0.0f;
  } else {
    const double e = v.got > v.expected ? static_cast<double>(v.got) - v.expected
                                        : static_cast<double>(v.expected) - v.got;
    const double a = v.expected < 0 ? -static_cast<double>(v.expected) : v.expected;
    if (!v.excused) {
      s.sum_sq_error += e * e;
      s.sum_sq_expected += a * a;
      s.sum_sq_noise += static_cast<double>(v.noise) * v.noise;
    }
    if (e > s.max_abs) s.max_abs = e;
    if (a > 0 && e / a > s.max_rel) s.max_rel = e / a;
    score = static_cast<float>(e) * (v.bad ? 1e20f : 1.0f);
  }
  if (score > s.worst_score) {
    s.worst_score = score;
    s.worst_index = index;
    s.worst_expected = v.expected;
    s.worst_got = v.got;
  }
}

ASSAY_HD inline void merge(CompareStats& s, const CompareStats& o) {
  s.count += o.count;
  s.bad += o.bad;
  s.non_finite += o.non_finite;
  s.excused += o.excused;
  if (o.max_abs > s.max_abs) s.max_abs = o.max_abs;
  if (o.max_rel > s.max_rel) s.max_rel = o.max_rel;
  if (o.max_use > s.max_use) s.max_use = o.max_use;
  s.sum_sq_error += o.sum_sq_error;
  s.sum_sq_expected += o.sum_sq_expected;
  s.sum_sq_noise += o.sum_sq_noise;
  if (o.worst_score > s.worst_score ||
      (o.worst_score == s.worst_score && o.worst_index >= 0 && o.worst_index < s.worst_index)) {
    s.worst_score = o.worst_score;
    s.worst_index = o.worst_index;
    s.worst_expected = o.worst_expected;
    s.worst_got = o.worst_got;
  }
}

/// The default comparison of one element of a float output of type `dtype`.
ASSAY_HD inline Sample compare_element(float expected, float got, DType dtype, Tolerance tol) {
  Sample s;
  s.expected = expected;
  s.got = got;
  s.noise = round_to(dtype, expected) - expected;
  if (!is_finite(got) || !is_finite(expected)) {
    s.bad = !(float_bits(got) == float_bits(expected));
    s.noise = 0;
    return s;
  }
  const float e = got > expected ? got - expected : expected - got;
  const float a = expected < 0 ? -expected : expected;
  const float allowed = tol.atol + tol.rtol * a;
  s.bad = !(e <= allowed);
  s.use = allowed > 0 ? e / allowed : 0.0f;
  return s;
}

}  // namespace assay
