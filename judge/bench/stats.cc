// SPDX-License-Identifier: Apache-2.0
#include "judge/bench/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "wire/digest.h"

namespace assay {

double quantile(std::vector<double> v, double q) {
  if (v.empty()) return NAN;
  std::sort(v.begin(), v.end());
  const double at = q * static_cast<double>(v.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, v.size() - 1);
  return v[low] + (at - static_cast<double>(low)) * (v[high] - v[low]);
}

double median(std::vector<double> v) {
  return quantile(std::move(v), 0.5);
}

double midmean(std::vector<double> values) {
  if (values.size() < 4) return median(std::move(values));
  std::sort(values.begin(), values.end());
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  const auto last = values.end() - static_cast<std::ptrdiff_t>(values.size() / 4);
  return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

double slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double up = 0, across = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    up += (x[i] - mean_x) * y[i];
    across += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return up / across;
}

Interval bootstrap_median(const std::vector<double>& values, std::uint64_t seed, int resamples) {
  if (values.empty()) return {NAN, NAN};
  std::vector<double> medians, draw(values.size());
  std::uint64_t state = seed;
  for (int r = 0; r < resamples; ++r) {
    for (double& d : draw) d = values[wire::mix64(++state) % values.size()];
    medians.push_back(median(draw));
  }
  return {quantile(medians, 0.025), quantile(medians, 0.975)};
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (double v : values) {
    if (!(v > 0)) return 0;
    sum += std::log(v);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace assay
