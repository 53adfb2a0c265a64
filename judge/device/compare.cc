// SPDX-License-Identifier: Apache-2.0
#include "judge/device/compare.h"

#include <cmath>

namespace assay {
namespace {

double root_mean(double sum, std::int64_t count) {
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

}  // namespace

double CompareStats::rms_error() const {
  return root_mean(sum_sq_error, count - excused);
}
double CompareStats::rms_expected() const {
  return root_mean(sum_sq_expected, count - excused);
}
double CompareStats::rms_noise() const {
  return root_mean(sum_sq_noise, count - excused);
}

}  // namespace assay
