// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

/// Linear interpolation between order statistics; q in [0, 1]. NaN for no values.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);

/// Mean of the middle half. As robust as the median, and finer where a clock's step is not small
/// against what it measures. NaN for no values.
double midmean(std::vector<double> values);

/// Of the least-squares line through (x, y). NaN when all x are the same.
double slope(const std::vector<double>& x, const std::vector<double>& y);

struct Interval {
  double low = 0, high = 0;
};

/// 95 % percentile bootstrap interval of the median, `resamples` draws from `seed`.
Interval bootstrap_median(const std::vector<double>& values, std::uint64_t seed,
                          int resamples = 400);

/// exp(mean(log)); 0 if any value is not positive, or there are none.
double geometric_mean(const std::vector<double>& values);

}  // namespace assay
