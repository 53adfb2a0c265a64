// SPDX-License-Identifier: Apache-2.0
// Dequantises and transposes all weights in prepare: 30 times the work of a call, done once and
// kept (compare stale_weights, which keeps them for too long).
#include <assay/kernel.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

uint16_t to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

float from_bf16(uint16_t b) {
  const uint32_t u = static_cast<uint32_t>(b) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

struct Weights {
  int64_t n, k;
  std::vector<float> w;  // [K, N]
};

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t,
                               void** state) {
  auto* w = new Weights{constants[0].shape[1], constants[0].shape[0] * 2, {}};
  const auto* q = static_cast<const uint8_t*>(constants[0].data);
  const auto* scale = static_cast<const uint16_t*>(constants[1].data);
  const auto* zero = static_cast<const uint16_t*>(constants[2].data);
  w->w.resize(w->n * w->k);
  for (int64_t k = 0; k < w->k; ++k)
    for (int64_t n = 0; n < w->n; ++n) {
      const int64_t group = k / 128 * w->n + n;
      const int bits = q[k / 2 * w->n + n] >> (k % 2 == 0 ? 0 : 4) & 15;
      w->w[k * w->n + n] =
          (static_cast<float>(bits) - from_bf16(zero[group])) * from_bf16(scale[group]);
    }
  *state = w;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  const auto& w = *static_cast<Weights*>(state);
  const auto* x = static_cast<const uint16_t*>(inputs[0].data);
  auto* y = static_cast<uint16_t*>(outputs[0].data);
  std::vector<float> sums(w.n);
  for (int64_t m = 0; m < inputs[0].shape[0]; ++m) {
    std::memset(sums.data(), 0, w.n * sizeof(float));
    for (int64_t k = 0; k < w.k; ++k) {
      const float a = from_bf16(x[m * w.k + k]);
      const float* row = &w.w[k * w.n];
      float* s = sums.data();
      for (int64_t n = 0; n < w.n; ++n) s[n] += a * row[n];
    }
    for (int64_t n = 0; n < w.n; ++n) y[m * w.n + n] = to_bf16(sums[n]);
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<Weights*>(state);
}
