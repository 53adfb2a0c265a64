// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace assay {

/// Writes back and drops every cache line of the range, from every cache of the machine. Where the
/// processor has no such instruction (not x86), streams a large buffer through instead.
void evict_lines(const void* data, std::int64_t bytes);

}  // namespace assay
