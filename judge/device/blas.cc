// SPDX-License-Identifier: Apache-2.0
// OpenBLAS is loaded when first needed: the binary runs, and grades on a GPU, without it.
#include "judge/device/blas.h"

#include <dlfcn.h>

#include "judge/base/fault.h"

namespace assay {
namespace {

// The CBLAS interface's own numbers.
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                       float, float*, int);

Sgemm load() {
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw JudgeError("libopenblas.so.0 not found: install libopenblas0-pthread");
  // Its own threads would spin between calls, on the cores that a submission is timed on.
  if (void* set = ::dlsym(library, "openblas_set_num_threads"))
    reinterpret_cast<void (*)(int)>(set)(1);
  void* f = ::dlsym(library, "cblas_sgemm");
  if (f == nullptr) throw JudgeError("libopenblas.so.0 has no cblas_sgemm: reinstall it");
  return reinterpret_cast<Sgemm>(f);
}

}  // namespace

void sgemm(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           const float* b, float* c) {
  static const Sgemm f = load();
  f(kRowMajor, kNoTranspose, transpose_b ? kTranspose : kNoTranspose, static_cast<int>(m),
    static_cast<int>(n), static_cast<int>(k), 1.0f, a, static_cast<int>(k), b,
    static_cast<int>(transpose_b ? k : n), 0.0f, c, static_cast<int>(n));
}

}  // namespace assay
