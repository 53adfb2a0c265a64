// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cuBLASLt, loaded when first needed: the oracles' products and the probe's ceilings.
#pragma once

#include <cstdint>
#include <memory>

namespace assay {

class Cublas {
 public:
  /// JudgeError if the libraries cannot be found.
  Cublas();
  ~Cublas();

  /// c[m,n] = a[m,k] * op(b), row-major IEEE fp32 (no tf32); op(b) is b[n,k] transposed, or b[k,n].
  void sgemm(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
             const float* b, float* c);

  enum class Format { kBf16, kFp8, kInt8 };
  /// y[n,n] = x[n,n] * w[n,n]^T in the format, as fast as the library can. Any bytes will do.
  /// False if the library has no such product on this device.
  bool square(Format, std::int64_t n, const void* x, const void* w, void* y, void* workspace,
              std::int64_t workspace_bytes);

 private:
  struct Functions;
  std::unique_ptr<Functions> f_;
};

}  // namespace assay
