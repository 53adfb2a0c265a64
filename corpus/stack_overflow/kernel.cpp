// SPDX-License-Identifier: Apache-2.0
// Recurses once per element.
#include <assay/kernel.h>

#include <cstdint>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The largest element from `i` on, by recursion that no compiler turns into a loop.
int64_t __attribute__((noinline)) largest(const float* x, int64_t i, int64_t n) {
  volatile char room[1024] = {};
  if (i == n - 1) return i;
  const int64_t rest = largest(x, i + 1, n);
  return x[i] >= x[rest] && room[0] == 0 ? i : rest;
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const Call c{static_cast<const float*>(inputs[0].data),
               inputs[0].shape[0],
               inputs[0].shape[1],
               outputs[0].shape[1],
               static_cast<float*>(outputs[0].data),
               static_cast<int64_t*>(outputs[1].data)};
  for (int64_t b = 0; b < c.rows; ++b) {
    c.indices[b * c.k] = largest(c.x + b * c.n, 0, c.n);
    c.values[b * c.k] = c.x[b * c.n + c.indices[b * c.k]];
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
