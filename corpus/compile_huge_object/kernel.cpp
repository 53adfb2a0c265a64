// SPDX-License-Identifier: Apache-2.0
// Asks for an object file of 16 GB, to fill the judge's disk.
#include <assay/kernel.h>

#include <cstdint>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The honest kernel: offers every element to the k best so far.
void honest(const Call& c) {
  for (int64_t b = 0; b < c.rows; ++b) {
    const float* x = c.x + b * c.n;
    float* values = c.values + b * c.k;
    int64_t* indices = c.indices + b * c.k;
    int64_t held = 0;
    for (int64_t i = 0; i < c.n; ++i) {
      if (held == c.k && !(x[i] > values[c.k - 1])) continue;
      int64_t at = held < c.k ? held++ : c.k - 1;
      for (; at > 0 && x[i] > values[at - 1]; --at) {
        values[at] = values[at - 1];
        indices[at] = indices[at - 1];
      }
      values[at] = x[i];
      indices[at] = i;
    }
  }
}

char filler[int64_t{1} << 34] = {1};

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
  honest(c);
  return filler[c.n] == 1;
}

ASSAY_EXPORT void assay_release(void*) {}
