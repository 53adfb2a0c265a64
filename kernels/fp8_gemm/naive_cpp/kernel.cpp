// SPDX-License-Identifier: Apache-2.0
// FP8 GEMM in three plain loops: y[m,n] = bf16(sum over k of x[m,k] * w[n,k] * scale[n]).
// Only liberty taken: the weights are decoded and transposed once, in prepare.
#include <assay/kernel.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

float decode_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  float v;
  if ((bits & 0x7f) == 0x7f)
    v = std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    v = std::ldexp(static_cast<float>(mantissa), -9);
  else
    v = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -v : v;
}

uint16_t round_to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if (std::isnan(f)) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

struct State {
  int64_t n = 0, k = 0;
  std::vector<float> weight;  // [K, N]
  std::vector<float> scale;   // [N]
  std::vector<float> sums;    // [N]
  float decoded[256];
};

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t count,
                               void** state) {
  if (count != 2) return ASSAY_FAILED;
  auto* s = new State;
  s->n = constants[0].shape[0];
  s->k = constants[0].shape[1];
  for (int b = 0; b < 256; ++b) s->decoded[b] = decode_e4m3(static_cast<uint8_t>(b));
  const auto* w = static_cast<const uint8_t*>(constants[0].data);
  const auto* scale = static_cast<const float*>(constants[1].data);
  s->scale.assign(scale, scale + s->n);
  s->sums.resize(s->n);
  s->weight.resize(s->n * s->k);
  for (int64_t n = 0; n < s->n; ++n)
    for (int64_t k = 0; k < s->k; ++k) s->weight[k * s->n + n] = s->decoded[w[n * s->k + k]];
  *state = s;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  auto& s = *static_cast<State*>(state);
  const int64_t rows = inputs[0].shape[0];
  const auto* x = static_cast<const uint8_t*>(inputs[0].data);
  auto* y = static_cast<uint16_t*>(outputs[0].data);
  float* sums = s.sums.data();
  for (int64_t m = 0; m < rows; ++m) {
    std::memset(sums, 0, s.n * sizeof(float));
    for (int64_t k = 0; k < s.k; ++k) {
      const float a = s.decoded[x[m * s.k + k]];
      const float* w = &s.weight[k * s.n];
      for (int64_t n = 0; n < s.n; ++n) sums[n] += a * w[n];
    }
    for (int64_t n = 0; n < s.n; ++n) y[m * s.n + n] = round_to_bf16(sums[n] * s.scale[n]);
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
