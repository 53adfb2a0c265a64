// SPDX-License-Identifier: Apache-2.0
// One thread per output: unpacks, dequantises and sums along K in fp32.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kGroup = 128, kThreads = 128;

struct State {
  const uint8_t* w_q;           // [K/2, N], the even k in the low half of a byte
  const __nv_bfloat16* scales;  // [K/128, N]
  const __nv_bfloat16* zeros;   // [K/128, N]
};

__global__ void gemm(const __nv_bfloat16* x, State s, __nv_bfloat16* y, int64_t N, int64_t K) {
  const int64_t n = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, m = blockIdx.y;
  if (n >= N) return;
  float sum = 0;
  for (int64_t g = 0; g < K / kGroup; ++g) {
    const float scale = __bfloat162float(s.scales[g * N + n]);
    const float zero = __bfloat162float(s.zeros[g * N + n]);
    float group = 0;
    for (int64_t k = g * kGroup; k < (g + 1) * kGroup; k += 2) {
      const int pair = s.w_q[k / 2 * N + n];
      group += (static_cast<float>(pair & 15) - zero) * __bfloat162float(x[m * K + k]);
      group += (static_cast<float>(pair >> 4) - zero) * __bfloat162float(x[m * K + k + 1]);
    }
    sum += group * scale;
  }
  y[m * N + n] = __float2bfloat16(sum);
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t,
                               void** state) {
  *state = new State{static_cast<const uint8_t*>(constants[0].data),
                     static_cast<const __nv_bfloat16*>(constants[1].data),
                     static_cast<const __nv_bfloat16*>(constants[2].data)};
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const int64_t M = inputs[0].shape[0], K = inputs[0].shape[1], N = outputs[0].shape[1];
  const dim3 grid(static_cast<unsigned>((N + kThreads - 1) / kThreads), static_cast<unsigned>(M));
  gemm<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __nv_bfloat16*>(inputs[0].data), *static_cast<State*>(state),
      static_cast<__nv_bfloat16*>(outputs[0].data), N, K);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
