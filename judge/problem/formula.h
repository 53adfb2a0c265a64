// SPDX-License-Identifier: Apache-2.0
// The arithmetic of problem.yaml: + - * / ( ) numbers, axis names, min(a,b), max(a,b), ceil(x),
// floor(x). Shown to users exactly as written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/problem/shape.h"

namespace assay {

class Formula {
 public:
  Formula() = default;
  /// Parses; UsageError with the column on a syntax error or a name not among `axes`.
  Formula(const std::string& text, const std::vector<std::string>& axes);
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// Throws JudgeError on division by zero or a result that is not finite.
  double evaluate(const Shape&) const;

 private:
  std::string text_;
  std::function<double(const Shape&)> eval_;
};

}  // namespace assay
