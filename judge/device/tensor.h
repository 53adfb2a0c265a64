// SPDX-License-Identifier: Apache-2.0
// A view of a dense row-major tensor in some device's memory. Plain data, usable in kernels.
#pragma once

#include <cstdint>

#include "judge/device/numeric.h"
#include "wire/dtype.h"

namespace assay {

inline constexpr int kMaxRank = 8;

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int rank = 0;
  std::int64_t shape[kMaxRank] = {};

  ASSAY_HD std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  std::int64_t bytes() const { return size() * size_bytes(dtype); }

  /// The elements as T (float, Bf16, E4m3, std::uint8_t, std::int32_t, std::int64_t ...). The
  /// caller names the type it declared in problem.yaml.
  template <class T>
  ASSAY_HD T* as() const {
    return static_cast<T*>(data);
  }
};

/// Element `i` as a float, whatever the dtype (integers are converted).
ASSAY_HD inline float load_as_float(const Tensor& t, std::int64_t i) {
  switch (t.dtype) {
    case DType::kF32:
      return t.as<float>()[i];
    case DType::kF64:
      return static_cast<float>(t.as<double>()[i]);
    case DType::kBf16:
      return to_float(t.as<Bf16>()[i]);
    case DType::kF16:
      return to_float(t.as<F16>()[i]);
    case DType::kE4m3:
      return to_float(t.as<E4m3>()[i]);
    case DType::kU8:
      return static_cast<float>(t.as<std::uint8_t>()[i]);
    case DType::kI32:
      return static_cast<float>(t.as<std::int32_t>()[i]);
    case DType::kI64:
      return static_cast<float>(t.as<std::int64_t>()[i]);
  }
  return 0.0f;
}

/// Rounds `v` to the tensor's dtype and stores it (float types only; integers are truncated).
ASSAY_HD inline void store_from_float(const Tensor& t, std::int64_t i, float v) {
  switch (t.dtype) {
    case DType::kF32:
      t.as<float>()[i] = v;
      break;
    case DType::kF64:
      t.as<double>()[i] = v;
      break;
    case DType::kBf16:
      t.as<Bf16>()[i] = to_bf16(v);
      break;
    case DType::kF16:
      t.as<F16>()[i] = to_f16(v);
      break;
    case DType::kE4m3:
      t.as<E4m3>()[i] = to_e4m3(v);
      break;
    case DType::kU8:
      t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(v);
      break;
    case DType::kI32:
      t.as<std::int32_t>()[i] = static_cast<std::int32_t>(v);
      break;
    case DType::kI64:
      t.as<std::int64_t>()[i] = static_cast<std::int64_t>(v);
      break;
  }
}

/// What `v` becomes when stored as `dtype` and read back.
ASSAY_HD inline float round_to(DType dtype, float v) {
  switch (dtype) {
    case DType::kBf16:
      return to_float(to_bf16(v));
    case DType::kF16:
      return to_float(to_f16(v));
    case DType::kE4m3:
      return to_float(to_e4m3(v));
    default:
      return v;
  }
}

}  // namespace assay
