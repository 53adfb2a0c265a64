// SPDX-License-Identifier: Apache-2.0
// Paged attention with a block per query head: its warps take the tokens in turn, each with a
// running maximum, and merge at the end.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kWarps = 8, kMostColumns = 8;  // columns per lane: D up to 256

struct Sizes {
  int64_t Hq, Hkv, D, page, pages;
};

__global__ void attend(const __nv_bfloat16* query, const __nv_bfloat16* cache, const int32_t* table,
                       const int32_t* lengths, __nv_bfloat16* out, Sizes s) {
  extern __shared__ float merged[];  // per warp: maximum, sum, D weighted columns
  const int64_t h = blockIdx.x, b = blockIdx.y, g = h / (s.Hq / s.Hkv);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const __nv_bfloat16* q = query + (b * s.Hq + h) * s.D;
  const float scale = rsqrtf(static_cast<float>(s.D));
  const int tokens = lengths[b];
  float most = -INFINITY, sum = 0, weighted[kMostColumns] = {};
  for (int j = warp; j < tokens; j += kWarps) {
    const int64_t page = table[b * s.pages + j / s.page];
    const __nv_bfloat16* k = cache + ((page * s.page + j % s.page) * s.Hkv + g) * 2 * s.D;
    float dot = 0;
    for (int64_t c = lane; c < s.D; c += 32) dot += __bfloat162float(q[c]) * __bfloat162float(k[c]);
    for (int o = 16; o > 0; o /= 2) dot += __shfl_xor_sync(~0u, dot, o);
    const float score = dot * scale, higher = fmaxf(most, score);
    const float old = expf(most - higher), now = expf(score - higher);
    most = higher;
    sum = sum * old + now;
    for (int i = 0; i < kMostColumns && lane + 32 * i < s.D; ++i)
      weighted[i] = weighted[i] * old + now * __bfloat162float(k[s.D + lane + 32 * i]);
  }
  float* mine = merged + warp * (s.D + 2);
  if (lane == 0) {
    mine[0] = most;
    mine[1] = sum;
  }
  for (int i = 0; i < kMostColumns && lane + 32 * i < s.D; ++i)
    mine[2 + lane + 32 * i] = weighted[i];
  __syncthreads();
  for (int64_t c = threadIdx.x; c < s.D; c += blockDim.x) {
    float top = -INFINITY, up = 0, down = 0;
    for (int w = 0; w < kWarps; ++w) top = fmaxf(top, merged[w * (s.D + 2)]);
    for (int w = 0; w < kWarps; ++w) {
      const float* part = merged + w * (s.D + 2);
      const float share = part[1] > 0 ? expf(part[0] - top) : 0;
      down += share * part[1];
      up += share * part[2 + c];
    }
    out[(b * s.Hq + h) * s.D + c] = __float2bfloat16(up / down);
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void* stream) {
  const Sizes s{inputs[0].shape[1], inputs[1].shape[2], inputs[0].shape[2], inputs[1].shape[1],
                inputs[2].shape[1]};
  const dim3 grid(static_cast<unsigned>(s.Hq), static_cast<unsigned>(inputs[0].shape[0]));
  attend<<<grid, 32 * kWarps, kWarps*(s.D + 2) * sizeof(float),
           static_cast<cudaStream_t>(stream)>>>(static_cast<const __nv_bfloat16*>(inputs[0].data),
                                                static_cast<const __nv_bfloat16*>(inputs[1].data),
                                                static_cast<const int32_t*>(inputs[2].data),
                                                static_cast<const int32_t*>(inputs[3].data),
                                                static_cast<__nv_bfloat16*>(outputs[0].data), s);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void*) {}
