// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "judge/device/device.h"

namespace assay {

/// "normal(sigma[, mean])", "uniform(low, high)", "integers(low, past_high)", "constant(value)"; or
/// "derived", which is nullopt: the problem's own code draws it. UsageError otherwise.
std::optional<Distribution> parse_distribution(const std::string& text);

}  // namespace assay
