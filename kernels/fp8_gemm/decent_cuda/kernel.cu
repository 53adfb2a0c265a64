// SPDX-License-Identifier: Apache-2.0
// fp8 tensor cores by mma.sync. A block computes 128 x 128 outputs (32 x 64 where M is small), K in
// steps of 64 bytes through a ring of asynchronous copies. Where K is no multiple of 64, weight is
// padded once and x on every call.
//
// Shared memory of a stage: rows of x, then rows of weight, 64 bytes each; the 16-byte chunks of a
// row are permuted by its number so that ldmatrix meets no bank twice. Each warp owns WM x WN
// outputs.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kStep = 64;  // bytes along K

struct State {
  const uint8_t* weight = nullptr;  // [N, padded]
  const float* scale = nullptr;
  uint8_t* padded_weight = nullptr;  // ours, or null
  uint8_t* padded_x = nullptr;
  int64_t padded = 0;  // K rounded up to kStep
};

__global__ void pad(const uint8_t* from, uint8_t* to, int64_t rows, int64_t K, int64_t padded) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * padded;
       i += stride) {
    const int64_t row = i / padded, k = i % padded;
    to[i] = k < K ? from[row * K + k] : 0;
  }
}

/// Byte offset of chunk `chunk` of row `row` within a tile.
__device__ int swizzled(int row, int chunk) {
  return row * kStep + ((chunk ^ (row >> 1 & 3)) << 4);
}

__device__ void copy_async(uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(valid ? 16 : 0));
}
__device__ void load_matrices(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}
__device__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int BM, int BN, int WM, int WN, int STAGES>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
    gemm(const uint8_t* x, const uint8_t* weight, const float* scale, __nv_bfloat16* y, int M,
         int N, int64_t padded) {
  constexpr int kThreads = BM / WM * (BN / WN) * 32, kStage = (BM + BN) * kStep;
  extern __shared__ __align__(128) unsigned char memory[];
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;
  const int first_m = static_cast<int>(blockIdx.x) * BM,
            first_n = static_cast<int>(blockIdx.y) * BN;
  const int steps = static_cast<int>(padded / kStep);

  const auto fetch = [&](int step) {
    const uint32_t stage = base + step % STAGES * kStage;
    for (int c = threadIdx.x; c < (BM + BN) * 4; c += kThreads) {
      const int row = c / 4, chunk = c % 4;
      const bool of_x = row < BM;
      const int global = of_x ? first_m + row : first_n + row - BM;
      const bool valid = global < (of_x ? M : N);
      const uint8_t* from = (of_x ? x : weight) + (valid ? global : 0) * padded +
                            static_cast<int64_t>(step) * kStep + chunk * 16;
      copy_async(stage + swizzled(row, chunk), from, valid);
    }
  };

  float sum[WM / 16][WN / 8][4] = {};
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) fetch(s);
    asm volatile("cp.async.commit_group;");
  }
  for (int step = 0; step < steps; ++step) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
    __syncthreads();  // the stage has arrived, and everybody is done with the one fetched next
    if (step + STAGES - 1 < steps) fetch(step + STAGES - 1);
    asm volatile("cp.async.commit_group;");
    const uint32_t stage = base + step % STAGES * kStage;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // 32 bytes of K each
      uint32_t a[WM / 16][4], b[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)  // rows 0-7 and 8-15, then the same, 16 bytes on
        load_matrices(a[i], stage + swizzled(warp_m + i * 16 + lane % 16, half * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < WN / 16; ++j)  // columns 0-7: both halves of K; columns 8-15: both halves
        load_matrices(b[j], stage + swizzled(BM + warp_n + j * 16 + lane / 16 * 8 + lane % 8,
                                             half * 2 + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j)
          multiply(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j) {
      const int n = first_n + warp_n + j * 8 + lane % 4 * 2;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int m = first_m + warp_m + i * 16 + lane / 4 + h * 8;
        if (m < M && n < N)  // N is even
          *reinterpret_cast<__nv_bfloat162*>(y + static_cast<int64_t>(m) * N + n) =
              __floats2bfloat162_rn(sum[i][j][h * 2] * scale[n],
                                    sum[i][j][h * 2 + 1] * scale[n + 1]);
      }
    }
}

template <int BM, int BN, int WM, int WN, int STAGES>
cudaError_t launch(const State& s, const uint8_t* x, __nv_bfloat16* y, int M, int N,
                   cudaStream_t stream) {
  constexpr int kBytes = (BM + BN) * kStep * STAGES;
  const auto kernel = gemm<BM, BN, WM, WN, STAGES>;
  static const cudaError_t ready =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (ready != cudaSuccess) return ready;
  const dim3 grid(static_cast<unsigned>((M + BM - 1) / BM),
                  static_cast<unsigned>((N + BN - 1) / BN));
  kernel<<<grid, BM / WM*(BN / WN) * 32, kBytes, stream>>>(x, s.weight, s.scale, y, M, N, s.padded);
  return cudaGetLastError();
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor* constants, int32_t,
                               void** state) {
  const int64_t M = problem->axes[0].value, N = problem->axes[1].value, K = problem->axes[2].value;
  if (N % 2 != 0) return ASSAY_UNSUPPORTED;
  auto* s = new State;
  *state = s;
  s->weight = static_cast<const uint8_t*>(constants[0].data);
  s->scale = static_cast<const float*>(constants[1].data);
  s->padded = (K + kStep - 1) / kStep * kStep;
  if (s->padded == K) return ASSAY_OK;
  if (cudaMalloc(&s->padded_weight, static_cast<size_t>(N * s->padded)) != cudaSuccess ||
      cudaMalloc(&s->padded_x, static_cast<size_t>(M * s->padded)) != cudaSuccess)
    return ASSAY_FAILED;
  pad<<<1024, 256>>>(s->weight, s->padded_weight, N, K, s->padded);
  s->weight = s->padded_weight;
  return cudaDeviceSynchronize() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const auto& s = *static_cast<State*>(state);
  const int M = static_cast<int>(inputs[0].shape[0]), N = static_cast<int>(outputs[0].shape[1]);
  const int64_t K = inputs[0].shape[1];
  const auto* x = static_cast<const uint8_t*>(inputs[0].data);
  auto* y = static_cast<__nv_bfloat16*>(outputs[0].data);
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  if (s.padded_x != nullptr) {
    pad<<<2048, 256, 0, cuda_stream>>>(x, s.padded_x, M, K, s.padded);
    x = s.padded_x;
  }
  const cudaError_t e = M <= 32 ? launch<32, 64, 32, 16, 8>(s, x, y, M, N, cuda_stream)
                                : launch<128, 128, 64, 32, 4>(s, x, y, M, N, cuda_stream);
  return e == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  auto* s = static_cast<State*>(state);
  cudaFree(s->padded_weight);
  cudaFree(s->padded_x);
  delete s;
}
