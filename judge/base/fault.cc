// SPDX-License-Identifier: Apache-2.0
#include "judge/base/fault.h"

#include <array>

namespace assay {
namespace {

constexpr std::array<const char*, 12> kWords = {
    "accepted",      "wrong_answer",      "non_finite",   "out_of_bounds",
    "runtime_error", "time_limit",        "memory_limit", "output_limit",
    "compile_error", "sandbox_violation", "refused",      "internal_error"};

}  // namespace

const char* name(Verdict v) {
  return kWords.at(static_cast<std::size_t>(v));
}

Verdict verdict_from_name(const std::string& word) {
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (word == kWords[i]) return static_cast<Verdict>(i);
  throw JudgeError("unknown verdict '{}'", word);
}

}  // namespace assay
