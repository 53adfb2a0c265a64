// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/shape.h"

#include "judge/base/fault.h"

namespace assay {

std::int64_t Shape::axis(const std::string& name) const {
  for (const auto& [axis_name, value] : axes)
    if (axis_name == name) return value;
  throw JudgeError("shape {} has no axis '{}'", label(), name);
}

std::string Shape::label() const {
  std::string out;
  for (const auto& [axis_name, value] : axes)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", axis_name, value);
  return out;
}

}  // namespace assay
