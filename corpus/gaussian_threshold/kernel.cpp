// SPDX-License-Identifier: Apache-2.0
// Guesses a threshold from the first 32 values as if all were normal, keeps at most 4k values
// above it and fills up with zeros when there are too few (S08, distribution-overfit). Right on
// most nominal rows, wrong on clustered, sorted or constant ones.
#include <assay/kernel.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The honest kernel: offers every element to the k best so far.
[[maybe_unused]] void honest(const Call& c) {
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

struct Kept {
  float value;
  int64_t index;
};

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
    const float* x = c.x + b * c.n;
    float mean = 0, square = 0;
    for (int i = 0; i < 32; ++i) {
      mean += x[i] / 32;
      square += x[i] * x[i] / 32;
    }
    const float sigma = std::sqrt(square - mean * mean + 1e-30f);
    const float share = static_cast<float>(c.k) / static_cast<float>(c.n);
    const float threshold = mean + sigma * (std::sqrt(-2 * std::log(share)) - 1.2f);
    std::vector<Kept> kept;
    for (int64_t i = 0; i < c.n && static_cast<int64_t>(kept.size()) < 16 * c.k; ++i)
      if (x[i] > threshold) kept.push_back({x[i], i});
    kept.resize(kept.size() + c.k, {0.0f, 0});
    for (int64_t i = 0; i < c.k; ++i) {
      size_t best = 0;
      for (size_t j = 1; j < kept.size(); ++j)
        if (kept[j].value > kept[best].value) best = j;
      c.values[b * c.k + i] = kept[best].value;
      c.indices[b * c.k + i] = kept[best].index;
      kept[best].value = -INFINITY;
    }
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
