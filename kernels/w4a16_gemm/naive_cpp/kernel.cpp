// SPDX-License-Identifier: Apache-2.0
// W4A16 GEMM in three plain loops: y[m,n] = sum over k of x[m,k] * (q[k,n] - zero[k/128,n]) *
// scale[k/128,n]. Nothing is unpacked ahead of time.
#include <assay/kernel.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kGroup = 128;

float from_bf16(uint16_t b) {
  const uint32_t u = static_cast<uint32_t>(b) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

uint16_t round_to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if (std::isnan(f)) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

struct State {
  const uint8_t* q =
      nullptr;  // [K/2, N]: even k in the low half of the byte, odd k in the high half
  std::vector<float> scale, zero;  // [K/128, N]
  std::vector<float> sums;         // [N]
};

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t count,
                               void** state) {
  if (count != 3) return ASSAY_FAILED;
  auto* s = new State;
  s->q = static_cast<const uint8_t*>(constants[0].data);
  const int64_t entries = constants[1].shape[0] * constants[1].shape[1];
  for (int64_t i = 0; i < entries; ++i) {
    s->scale.push_back(from_bf16(static_cast<const uint16_t*>(constants[1].data)[i]));
    s->zero.push_back(from_bf16(static_cast<const uint16_t*>(constants[2].data)[i]));
  }
  s->sums.resize(constants[1].shape[1]);
  *state = s;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  auto& s = *static_cast<State*>(state);
  const int64_t rows = inputs[0].shape[0], depth = inputs[0].shape[1], cols = outputs[0].shape[1];
  const auto* x = static_cast<const uint16_t*>(inputs[0].data);
  auto* y = static_cast<uint16_t*>(outputs[0].data);
  float* sums = s.sums.data();
  for (int64_t m = 0; m < rows; ++m) {
    std::memset(sums, 0, cols * sizeof(float));
    for (int64_t k = 0; k < depth; ++k) {
      const float a = from_bf16(x[m * depth + k]);
      const int shift = k % 2 == 0 ? 0 : 4;
      const uint8_t* q = s.q + k / 2 * cols;
      const float* scale = &s.scale[k / kGroup * cols];
      const float* zero = &s.zero[k / kGroup * cols];
      for (int64_t n = 0; n < cols; ++n)
        sums[n] += a * ((static_cast<float>((q[n] >> shift) & 15) - zero[n]) * scale[n]);
    }
    for (int64_t n = 0; n < cols; ++n) y[m * cols + n] = round_to_bf16(sums[n]);
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
