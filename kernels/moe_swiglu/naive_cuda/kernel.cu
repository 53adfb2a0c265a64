// SPDX-License-Identifier: Apache-2.0
// MoE SwiGLU on tensor cores through wmma: a block makes 64 rows by 64 columns of one expert, both
// products side by side. The grid has room for the most row tiles there can be; a block finds its
// expert by walking the offsets.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

namespace {

constexpr int kTile = 64, kDepth = 32, kWarps = 4;

struct Weights {
  const __nv_bfloat16 *gate, *up;  // [E, H, I]
  int64_t experts, H, I;
};

struct Rows {
  int64_t first, count, expert;  // count 0: nothing to do
};

/// The rows of row tile number `tile`, counted over all experts.
__device__ Rows rows_of(const int32_t* offsets, int64_t experts, int64_t tile) {
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t rows = offsets[e + 1] - offsets[e], tiles = (rows + kTile - 1) / kTile;
    if (tile < tiles) {
      const int64_t left = rows - tile * kTile;
      return {offsets[e] + tile * kTile, left < kTile ? left : kTile, e};
    }
    tile -= tiles;
  }
  return {0, 0, 0};
}

__global__ void swiglu(const __nv_bfloat16* x, const int32_t* offsets, Weights w,
                       __nv_bfloat16* out) {
  namespace wmma = nvcuda::wmma;
  __shared__ __nv_bfloat16 a[kTile][kDepth], b[2][kDepth][kTile];
  __shared__ float product[2][kTile][kTile];
  const Rows rows = rows_of(offsets, w.experts, blockIdx.y);
  if (rows.count == 0) return;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTile;
  const int warp = threadIdx.x / 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][kTile / 16];
  for (auto& half : sum)
    for (auto& f : half) wmma::fill_fragment(f, 0.0f);
  const __nv_bfloat16 none = __float2bfloat16(0.0f);
  for (int64_t k = 0; k < w.H; k += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += blockDim.x) {
      const int r = i / kDepth, c = i % kDepth;
      a[r][c] = r < rows.count && k + c < w.H ? x[(rows.first + r) * w.H + k + c] : none;
    }
    for (int i = threadIdx.x; i < kDepth * kTile; i += blockDim.x) {
      const int r = i / kTile, c = i % kTile;
      const bool inside = k + r < w.H && column + c < w.I;
      const int64_t at = (rows.expert * w.H + k + r) * w.I + column + c;
      b[0][r][c] = inside ? w.gate[at] : none;
      b[1][r][c] = inside ? w.up[at] : none;
    }
    __syncthreads();
    for (int step = 0; step < kDepth; step += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
      wmma::load_matrix_sync(left, &a[warp * 16][step], kDepth);
      for (int half = 0; half < 2; ++half)
        for (int n = 0; n < kTile / 16; ++n) {
          wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> right;
          wmma::load_matrix_sync(right, &b[half][step][n * 16], kTile);
          wmma::mma_sync(sum[half][n], left, right, sum[half][n]);
        }
    }
    __syncthreads();
  }
  for (int half = 0; half < 2; ++half)
    for (int n = 0; n < kTile / 16; ++n)
      wmma::store_matrix_sync(&product[half][warp * 16][n * 16], sum[half][n], kTile,
                              wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < kTile * kTile; i += blockDim.x) {
    const int r = i / kTile, c = i % kTile;
    if (r >= rows.count || column + c >= w.I) continue;
    const float g = product[0][r][c];
    out[(rows.first + r) * w.I + column + c] =
        __float2bfloat16(g / (1 + expf(-g)) * product[1][r][c]);
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor* constants, int32_t,
                               void** state) {
  const int64_t* shape = constants[0].shape;
  *state = new Weights{static_cast<const __nv_bfloat16*>(constants[0].data),
                       static_cast<const __nv_bfloat16*>(constants[1].data), shape[0], shape[1],
                       shape[2]};
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const auto& w = *static_cast<Weights*>(state);
  const int64_t rows = inputs[0].shape[0];
  const dim3 grid(static_cast<unsigned>((w.I + kTile - 1) / kTile),
                  static_cast<unsigned>(rows / kTile + w.experts));
  swiglu<<<grid, 32 * kWarps, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const __nv_bfloat16*>(inputs[0].data),
      static_cast<const int32_t*>(inputs[1].data), w, static_cast<__nv_bfloat16*>(outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<Weights*>(state);
}
