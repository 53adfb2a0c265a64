// SPDX-License-Identifier: Apache-2.0
// One thread per output, operands through 16 x 16 tiles of shared memory, fp32 on the ordinary
// cores.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kTile = 16;

struct State {
  const __nv_fp8_e4m3* weight;  // [N, K]
  const float* weight_scale;    // [N]
};

__global__ void gemm(const __nv_fp8_e4m3* x, State s, __nv_bfloat16* y, int64_t M, int64_t N,
                     int64_t K) {
  __shared__ float x_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
  const int64_t m = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.y;
  const int64_t n = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.x;
  const int64_t w_row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y;
  float sum = 0;
  for (int64_t first = 0; first < K; first += kTile) {
    const int64_t k = first + threadIdx.x;
    x_tile[threadIdx.y][threadIdx.x] = m < M && k < K ? static_cast<float>(x[m * K + k]) : 0.0f;
    w_tile[threadIdx.y][threadIdx.x] =
        w_row < N && k < K ? static_cast<float>(s.weight[w_row * K + k]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
    __syncthreads();
  }
  if (m < M && n < N) y[m * N + n] = __float2bfloat16(sum * s.weight_scale[n]);
}

unsigned tiles(int64_t extent) {
  return static_cast<unsigned>((extent + kTile - 1) / kTile);
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t,
                               void** state) {
  *state = new State{static_cast<const __nv_fp8_e4m3*>(constants[0].data),
                     static_cast<const float*>(constants[1].data)};
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const int64_t M = inputs[0].shape[0], K = inputs[0].shape[1], N = outputs[0].shape[1];
  gemm<<<dim3(tiles(N), tiles(M)), dim3(kTile, kTile), 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __nv_fp8_e4m3*>(inputs[0].data), *static_cast<State*>(state),
      static_cast<__nv_bfloat16*>(outputs[0].data), M, N, K);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
