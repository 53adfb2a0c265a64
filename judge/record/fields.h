// SPDX-License-Identifier: Apache-2.0
// The figures of a shape and of a case by name: the same word in the database, in JSON and on
// pages. A new one needs a migration (migrations.cc).
#pragma once

#include <iterator>

#include "judge/bench/bench.h"
#include "judge/device/compare.h"

namespace assay {

template <class Struct, class Value>
struct Field {
  const char* name;
  Value Struct::*member;
};

inline constexpr Field<ShapeBench, double> kShapeFigures[] = {
    {"median_us", &ShapeBench::median_us},
    {"p5_us", &ShapeBench::p5_us},
    {"p95_us", &ShapeBench::p95_us},
    {"ci_low_us", &ShapeBench::ci_low_us},
    {"ci_high_us", &ShapeBench::ci_high_us},
    {"wall_us", &ShapeBench::wall_us},
    {"unseen_us", &ShapeBench::unseen_us},
    {"unseen_low_us", &ShapeBench::unseen_low_us},
    {"unseen_high_us", &ShapeBench::unseen_high_us},
    {"control_error_us", &ShapeBench::control_error_us},
    {"charged_us", &ShapeBench::charged_us},
    {"single_us", &ShapeBench::single_us},
    {"fresh_us", &ShapeBench::fresh_us},
    {"rekeyed_us", &ShapeBench::rekeyed_us},
    {"repeat_us", &ShapeBench::repeat_us},
    {"stamp_offset_us", &ShapeBench::stamp_offset_us},
    {"published_flops", &ShapeBench::published_flops},
    {"published_bytes", &ShapeBench::published_bytes},
    {"frac", &ShapeBench::frac},
    {"floor_us", &ShapeBench::floor_us},
    {"sol", &ShapeBench::sol},
    {"physics_us", &ShapeBench::physics_us},
    {"core_mhz", &ShapeBench::core_mhz},
    {"temperature_c", &ShapeBench::temperature_c},
    {"power_w", &ShapeBench::power_w},
};
inline constexpr Field<ShapeBench, int> kShapeCounts[] = {
    {"windows", &ShapeBench::windows},
    {"calls", &ShapeBench::calls},
    {"dropped_windows", &ShapeBench::dropped_windows},
};
inline constexpr Field<CompareStats, std::int64_t> kCaseCounts[] = {
    {"count", &CompareStats::count},
    {"bad", &CompareStats::bad},
    {"non_finite", &CompareStats::non_finite},
    {"excused", &CompareStats::excused},
    {"worst_index", &CompareStats::worst_index},
};
inline constexpr Field<CompareStats, double> kCaseFigures[] = {
    {"max_abs", &CompareStats::max_abs},
    {"max_rel", &CompareStats::max_rel},
    {"sum_sq_error", &CompareStats::sum_sq_error},
    {"sum_sq_expected", &CompareStats::sum_sq_expected},
    {"sum_sq_noise", &CompareStats::sum_sq_noise},
};
inline constexpr Field<CompareStats, float> kCaseValues[] = {
    {"worst_expected", &CompareStats::worst_expected},
    {"worst_got", &CompareStats::worst_got},
};

// A member that is in none of these lists would be lost. (worst_score only ranks.)
static_assert(sizeof(ShapeBench) - sizeof(std::string) - sizeof(double) * std::size(kShapeFigures) -
                  sizeof(int) * std::size(kShapeCounts) <
              alignof(ShapeBench));
static_assert(sizeof(CompareStats) - sizeof(std::int64_t) * std::size(kCaseCounts) -
                  sizeof(double) * std::size(kCaseFigures) -
                  sizeof(float) * (std::size(kCaseValues) + 1) <
              alignof(CompareStats));

}  // namespace assay
