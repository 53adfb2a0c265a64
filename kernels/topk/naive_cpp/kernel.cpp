// SPDX-License-Identifier: Apache-2.0
// Top-k by insertion: the k best so far are kept in order, every element is offered to them.
#include <assay/kernel.h>

namespace {

void top_of_row(const float* x, int64_t n, int64_t k, float* values, int64_t* indices) {
  int64_t held = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (held == k && !(x[i] > values[k - 1])) continue;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && x[i] > values[at - 1]; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = x[i];
    indices[at] = i;
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const int64_t rows = inputs[0].shape[0], n = inputs[0].shape[1], k = outputs[0].shape[1];
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* values = static_cast<float*>(outputs[0].data);
  auto* indices = static_cast<int64_t*>(outputs[1].data);
  for (int64_t b = 0; b < rows; ++b) top_of_row(x + b * n, n, k, values + b * k, indices + b * k);
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
