// SPDX-License-Identifier: Apache-2.0
// Element types, with the codes of assay/kernel.h.
#pragma once

#include <cstdint>

namespace assay {

enum class DType : std::uint8_t { kF32 = 0, kF64, kBf16, kF16, kE4m3, kU8, kI32, kI64 };
inline constexpr int kDTypeCount = 8;

constexpr std::int64_t size_bytes(DType t) {
  switch (t) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kE4m3:
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr const char* name(DType t) {
  constexpr const char* kNames[kDTypeCount] = {"f32",  "f64", "bf16", "f16",
                                               "e4m3", "u8",  "i32",  "i64"};
  return kNames[static_cast<int>(t)];
}

}  // namespace assay
