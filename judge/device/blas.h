// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace assay {

/// c[m,n] = a[m,k] * op(b), row-major fp32, on the calling thread only; op(b) is b[n,k] transposed,
/// or b[k,n]. JudgeError if OpenBLAS is not installed.
void sgemm(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           const float* b, float* c);

}  // namespace assay
