// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// A problem size: the axes of problem.yaml with their values, in order.
struct Shape {
  std::vector<std::pair<std::string, std::int64_t>> axes;

  /// Throws JudgeError if there is no such axis.
  std::int64_t axis(const std::string& name) const;
  /// "M=4096 N=4096 K=4096"
  std::string label() const;
  bool operator==(const Shape&) const = default;
};

}  // namespace assay
