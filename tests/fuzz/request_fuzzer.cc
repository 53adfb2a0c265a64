// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::fuzz::request(std::as_bytes(std::span(data, size)));
  return 0;
}
