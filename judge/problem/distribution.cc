// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/distribution.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "judge/base/fault.h"
#include "judge/base/text.h"

namespace assay {
namespace {

struct Form {
  std::string name;
  Distribution::Kind kind;
  std::size_t least, most;  // arguments
};

const std::vector<Form>& forms() {
  static const std::vector<Form> table = {{"normal", Distribution::Kind::kNormal, 1, 2},
                                          {"uniform", Distribution::Kind::kUniform, 2, 2},
                                          {"integers", Distribution::Kind::kIntegers, 2, 2},
                                          {"constant", Distribution::Kind::kConstant, 1, 1}};
  return table;
}

std::vector<float> numbers(const std::string& list, const std::string& whole) {
  std::vector<float> out;
  const char* at = list.c_str();
  for (;;) {
    char* end = nullptr;
    const float v = std::strtof(at, &end);
    if (end == at || !std::isfinite(v)) throw UsageError("'{}' is not a distribution", whole);
    out.push_back(v);
    while (*end == ' ') ++end;
    if (*end == '\0') return out;
    if (*end != ',') throw UsageError("'{}' is not a distribution", whole);
    at = end + 1;
  }
}

}  // namespace

std::optional<Distribution> parse_distribution(const std::string& text) {
  if (text == "derived") return std::nullopt;
  const std::size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')')
    throw UsageError(
        "'{}' is not a distribution: write normal(sigma), uniform(low, high), "
        "integers(low, past_high), constant(value) or derived",
        text);
  const std::string word = text.substr(0, open);
  std::vector<std::string> names;
  for (const Form& f : forms()) {
    names.push_back(f.name);
    if (f.name != word) continue;
    const std::vector<float> v = numbers(text.substr(open + 1, text.size() - open - 2), text);
    if (v.size() < f.least || v.size() > f.most)
      throw UsageError("{} takes {} to {} numbers", word, f.least, f.most);
    const Distribution d{f.kind, v[0], v.size() > 1 ? v[1] : 0.0f, 1};
    if (f.least == 2 && !(d.b > d.a)) throw UsageError("'{}': the range is empty", text);
    if (d.kind == Distribution::Kind::kNormal && !(d.a > 0))
      throw UsageError("'{}': sigma must be positive", text);
    return d;
  }
  throw UsageError("unknown distribution '{}'{}", word, suggestion(word, names));
}

}  // namespace assay
