// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// ", did you mean 'x'?" with the candidate at the smallest edit distance, or "" if none is close.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);

/// 16 lower-case hexadecimal digits: how seeds and digests are written everywhere.
std::string hex(std::uint64_t v);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace assay
