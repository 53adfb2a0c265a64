// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/formula.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "judge/base/fault.h"
#include "judge/base/text.h"

namespace assay {
namespace {

using Eval = std::function<double(const Shape&)>;

/// Recursive descent over: sum = product {(+|-) product}; product = factor {(*|/) factor};
/// factor = [-] (number | name | name(sum, ...) | (sum)).
class Parser {
 public:
  Parser(const std::string& text, const std::vector<std::string>& axes)
      : text_(text), axes_(axes) {}

  Eval parse() {
    Eval e = sum();
    skip_spaces();
    if (at_ != text_.size()) fail(fmt::format("unexpected '{}'", text_[at_]));
    return e;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("formula '{}', column {}: {}", text_, at_ + 1, what);
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }

  Eval sum() {
    Eval left = product();
    for (;;) {
      if (accept('+'))
        left = [l = left, r = product()](const Shape& s) { return l(s) + r(s); };
      else if (accept('-'))
        left = [l = left, r = product()](const Shape& s) { return l(s) - r(s); };
      else
        return left;
    }
  }
  Eval product() {
    Eval left = factor();
    for (;;) {
      if (accept('*'))
        left = [l = left, r = factor()](const Shape& s) { return l(s) * r(s); };
      else if (accept('/'))
        left = [l = left, r = factor()](const Shape& s) { return l(s) / r(s); };
      else
        return left;
    }
  }
  Eval factor() {
    if (++depth_ > 64) fail("nested too deeply");
    Eval e = unguarded_factor();
    --depth_;
    return e;
  }
  Eval unguarded_factor() {
    if (accept('-')) return [e = factor()](const Shape& s) { return -e(s); };
    if (accept('(')) {
      Eval e = sum();
      expect(')');
      return e;
    }
    skip_spaces();
    if (at_ >= text_.size()) fail("it ends too early");
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (std::isdigit(c) || c == '.') return number();
    if (std::isalpha(c) || c == '_') return named();
    fail(fmt::format("unexpected '{}'", text_[at_]));
  }
  Eval number() {
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    const double v = std::strtod(begin, &end);
    if (end == begin || !std::isfinite(v)) fail("not a number");
    at_ += static_cast<std::size_t>(end - begin);
    return [v](const Shape&) { return v; };
  }
  Eval named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (accept('(')) return call(word, begin);
    if (std::find(axes_.begin(), axes_.end(), word) == axes_.end()) {
      at_ = begin;
      fail(fmt::format("unknown axis '{}'{}", word, suggestion(word, axes_)));
    }
    return [word](const Shape& s) { return static_cast<double>(s.axis(word)); };
  }
  Eval call(const std::string& function, std::size_t begin) {
    const Eval a = sum();
    if (function == "ceil" || function == "floor") {
      expect(')');
      const bool up = function == "ceil";
      return [a, up](const Shape& s) { return up ? std::ceil(a(s)) : std::floor(a(s)); };
    }
    if (function == "min" || function == "max") {
      expect(',');
      const Eval b = sum();
      expect(')');
      const bool least = function == "min";
      return [a, b, least](const Shape& s) {
        return least ? std::min(a(s), b(s)) : std::max(a(s), b(s));
      };
    }
    at_ = begin;
    fail(fmt::format("unknown function '{}': there are min, max, ceil and floor", function));
  }

  const std::string& text_;
  const std::vector<std::string>& axes_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Formula::Formula(const std::string& text, const std::vector<std::string>& axes)
    : text_(text), eval_(Parser(text, axes).parse()) {}

double Formula::evaluate(const Shape& shape) const {
  if (!eval_) throw JudgeError("an empty formula was evaluated");
  const double v = eval_(shape);
  if (!std::isfinite(v)) throw JudgeError("formula '{}' has no value at {}", text_, shape.label());
  return v;
}

}  // namespace assay
