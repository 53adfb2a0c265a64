// SPDX-License-Identifier: Apache-2.0
// A block computes a tile of y, BM rows by 128 columns, over a part of K: packed weights and x come
// through a pipeline of four stages of 64 along K, weights are unpacked in registers and multiplied
// by tensor cores. Where the tiles are too few to fill the GPU, K is split among blocks; the last
// block of a tile to finish adds up the partial sums, always in the same order.
//
// Shared memory, four times: x, BM rows of 128 + 16 bytes; w_q, 32 packed rows of 128 + 32 bytes.
// The padding spreads the rows over the banks.
//
// Warps: each of the four copies a quarter of every stage and owns all rows of 32 columns.
#include <assay/kernel.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

using Bf16 = __nv_bfloat16;
using Bf16x2 = __nv_bfloat162;

constexpr int kGroup = 128, kBn = 128, kBk = 64, kStages = 4, kThreads = 128;
constexpr int kStagesPerGroup = kGroup / kBk;
constexpr int kXPitch = kBk * 2 + 16, kPackedRows = kBk / 2, kWPitch = kBn + 32;  // bytes

template <int BM>
constexpr int kStageBytes = BM* kXPitch + kPackedRows* kWPitch;

struct Args {
  const uint8_t* w_q;  // [K/2, N], the even k in the low half of a byte
  const Bf16* scales;  // [K/128, N]
  const Bf16* zeros;   // [K/128, N]
  float* partials;     // [splits, M, N]; none if there is one split
  unsigned* arrived;   // per tile: splits done; zero between calls
  int64_t M, N, K;
  int splits;
};

using Kernel = void (*)(Args, const Bf16* x, Bf16* y);

struct State {
  Args args;
  Kernel kernel;
  dim3 grid;  // tiles along M, tiles along N, splits
  int shared_bytes;
};

/// 16 bytes to shared memory; zeros if not `present`, but `from` must be an address in a buffer.
__device__ void copy_async(uint32_t to, const void* from, bool present) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(present ? 16 : 0)
               : "memory");
}
__device__ void commit_stage() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
__device__ void wait_oldest_stage() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
}

/// 16x16 of x at `from`, this lane's row of it, in the layout of multiply_add.
__device__ void load_a(uint32_t (&a)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(from)
               : "memory");
}
__device__ uint32_t load_word(uint32_t from) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}
__device__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ Bf16x2 as_pair(uint32_t bits) {
  return reinterpret_cast<const Bf16x2&>(bits);
}
__device__ uint32_t bits_of(Bf16x2 pair) {
  return reinterpret_cast<const uint32_t&>(pair);
}
/// Element j of four, in both halves.
__device__ Bf16x2 twice(uint2 four, int j) {
  return as_pair(__byte_perm(j < 2 ? four.x : four.y, 0, j % 2 == 0 ? 0x1010 : 0x3232));
}

/// What turns the bytes of a thread's four columns into weights, within one group.
struct Dequant {
  Bf16x2 scale[4], offset[4];

  __device__ Dequant(uint2 scales, uint2 zeros) {
    for (int j = 0; j < 4; ++j) {
      scale[j] = twice(scales, j);
      offset[j] = __hadd2(twice(zeros, j), as_pair(0x43004300));
    }
  }

  /// 0x4300 is 128 and its last bit is worth 1: a nibble put there is 128 + q. Zeros are integers
  /// of 0 .. 15, so the difference is exact and only the product rounds.
  __device__ uint32_t weights(uint32_t word, int j) const {
    const uint32_t byte = word >> (8 * j) & 0xff;
    const uint32_t biased = (byte & 0xf) | (byte & 0xf0) << 12 | 0x43004300;
    return bits_of(__hmul2(__hsub2(as_pair(biased), offset[j]), scale[j]));
  }
};

template <int BM>
__device__ void fetch_stage(const Args& g, const Bf16* x, int64_t k, uint32_t stage) {
  constexpr int kChunks = kBk * 2 / 16, kWChunks = kBn / 16;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) * BM;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < BM * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    const bool present = row0 + row < g.M;
    copy_async(stage + row * kXPitch + chunk * 16,
               x + (present ? row0 + row : 0) * g.K + k + chunk * 8, present);
  }
  const uint8_t* w = g.w_q + k / 2 * g.N + static_cast<int64_t>(blockIdx.y) * kBn;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kPackedRows * kWChunks; i += kThreads) {
    const int row = i / kWChunks, chunk = i % kWChunks;
    copy_async(stage + BM * kXPitch + row * kWPitch + chunk * 16, w + row * g.N + chunk * 16, true);
  }
}

/// Fragment j of a warp is not columns 8j .. 8j+7 but 4c + j for c in 0 .. 7: a thread then finds
/// its bytes of all four fragments in one word, and its sums of a row are of 8 columns in sequence.
template <int BM>
__device__ void multiply_stage(float (&sums)[BM / 16][4][4], uint32_t stage, const Dequant& dequant,
                               int warp, int lane) {
  const uint32_t a_at = stage + lane % 16 * kXPitch + lane / 16 * 16;
  const uint32_t b_at = stage + BM * kXPitch + lane % 4 * kWPitch + warp * 32 + lane / 4 * 4;
#pragma unroll
  for (int step = 0; step < kBk / 16; ++step) {
    uint32_t a[BM / 16][4];
#pragma unroll
    for (int m = 0; m < BM / 16; ++m) load_a(a[m], a_at + m * 16 * kXPitch + step * 32);
    const uint32_t low = load_word(b_at + step * 8 * kWPitch);
    const uint32_t high = load_word(b_at + (step * 8 + 4) * kWPitch);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t b0 = dequant.weights(low, j), b1 = dequant.weights(high, j);
#pragma unroll
      for (int m = 0; m < BM / 16; ++m) multiply_add(sums[m][j], a[m], b0, b1);
    }
  }
}

/// Adds into `sums` x times the groups first .. last-1 of the block's columns.
template <int BM>
__device__ void multiply_groups(float (&sums)[BM / 16][4][4], const Args& g, const Bf16* x,
                                int64_t first, int64_t last, int warp, int lane) {
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t stages = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int count = static_cast<int>(last - first) * kStagesPerGroup;
  const auto fetch = [&](int i) {
    if (i < count)
      fetch_stage<BM>(g, x, first * kGroup + i * kBk, stages + i % kStages * kStageBytes<BM>);
    commit_stage();  // an empty one too: waiting counts them
  };
  for (int i = 0; i < kStages - 1; ++i) fetch(i);

  const int64_t column = static_cast<int64_t>(blockIdx.y) * kBn + warp * 32 + lane / 4 * 4;
  const auto four = [&](const Bf16* of, int64_t group) {
    return __ldg(reinterpret_cast<const uint2*>(of + group * g.N + column));
  };
  uint2 scales = four(g.scales, first), zeros = four(g.zeros, first);
  int i = 0;
  for (int64_t group = first; group < last; ++group) {
    const Dequant dequant(scales, zeros);
    if (group + 1 < last) {  // a group ahead, to hide their latency
      scales = four(g.scales, group + 1);
      zeros = four(g.zeros, group + 1);
    }
#pragma unroll
    for (int half = 0; half < kStagesPerGroup; ++half, ++i) {
      wait_oldest_stage();
      __syncthreads();  // all have stage i, and none still reads the one about to be overwritten
      fetch(i + kStages - 1);
      multiply_stage<BM>(sums, stages + i % kStages * kStageBytes<BM>, dequant, warp, lane);
    }
  }
}

/// Calls visit(row, column, v) for each row this thread has sums of: v(i) is that of column + i,
/// i in 0 .. 7.
template <int BM, class Visit>
__device__ void for_each_row(float (&sums)[BM / 16][4][4], int64_t M, int warp, int lane,
                             Visit visit) {
  const int64_t column = static_cast<int64_t>(blockIdx.y) * kBn + warp * 32 + lane % 4 * 8;
#pragma unroll
  for (int m = 0; m < BM / 16; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row = static_cast<int64_t>(blockIdx.x) * BM + m * 16 + half * 8 + lane / 4;
      if (row < M)
        visit(row, column, [&](int i) -> float& { return sums[m][i % 4][half * 2 + i / 4]; });
    }
}

/// True in the last of the tile's blocks to arrive, which then sees the partial sums of all.
__device__ bool arrive_last(const Args& g) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned* arrived = g.arrived + (blockIdx.y * gridDim.x + blockIdx.x);
    last = atomicAdd(arrived, 1u) + 1 == gridDim.z;
    if (last) *arrived = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

template <int BM>
__global__ void __launch_bounds__(kThreads) gemm(Args g, const Bf16* x, Bf16* y) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t groups = g.K / kGroup;
  float sums[BM / 16][4][4] = {};
  multiply_groups<BM>(sums, g, x, blockIdx.z * groups / g.splits,
                      (blockIdx.z + 1) * groups / g.splits, warp, lane);

  if (g.splits > 1) {
    for_each_row<BM>(sums, g.M, warp, lane, [&](int64_t row, int64_t column, auto v) {
      float4* to = reinterpret_cast<float4*>(g.partials + (blockIdx.z * g.M + row) * g.N + column);
      to[0] = make_float4(v(0), v(1), v(2), v(3));
      to[1] = make_float4(v(4), v(5), v(6), v(7));
    });
    if (!arrive_last(g)) return;
    for_each_row<BM>(sums, g.M, warp, lane, [&](int64_t row, int64_t column, auto v) {
#pragma unroll
      for (int i = 0; i < 8; ++i) v(i) = 0;
      for (int split = 0; split < g.splits; ++split) {
        const float4* from =
            reinterpret_cast<const float4*>(g.partials + (split * g.M + row) * g.N + column);
        const float4 a = __ldcg(from), b = __ldcg(from + 1);
        v(0) += a.x, v(1) += a.y, v(2) += a.z, v(3) += a.w;
        v(4) += b.x, v(5) += b.y, v(6) += b.z, v(7) += b.w;
      }
    });
  }
  for_each_row<BM>(sums, g.M, warp, lane, [&](int64_t row, int64_t column, auto v) {
    uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = bits_of(__floats2bfloat162_rn(v(2 * i), v(2 * i + 1)));
    *reinterpret_cast<uint4*>(y + row * g.N + column) =
        make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  });
}

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Two blocks a multiprocessor of an H200 share its bandwidth; partial sums of few rows cost so
/// little that four are better there.
int splits_for(int64_t tiles, const Args& g) {
  const int64_t blocks = g.M <= 8 ? 528 : 264, groups = g.K / kGroup;
  const int64_t splits = divide_up(blocks, tiles);
  return static_cast<int>(splits < groups ? splits : groups);
}

template <int BM>
bool prepare(State& s) {
  Args& g = s.args;
  const int64_t tiles_m = divide_up(g.M, BM), tiles_n = g.N / kBn, tiles = tiles_m * tiles_n;
  g.splits = splits_for(tiles, g);
  s.kernel = gemm<BM>;
  s.grid = dim3(static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n),
                static_cast<unsigned>(g.splits));
  s.shared_bytes = kStages * kStageBytes<BM>;
  if (cudaFuncSetAttribute(gemm<BM>, cudaFuncAttributeMaxDynamicSharedMemorySize, s.shared_bytes) !=
      cudaSuccess)
    return false;
  if (g.splits == 1) return true;
  const size_t sums = static_cast<size_t>(g.splits * g.M * g.N);
  const size_t counters = static_cast<size_t>(tiles) * sizeof(unsigned);
  return cudaMalloc(&g.partials, sums * sizeof(float)) == cudaSuccess &&
         cudaMalloc(&g.arrived, counters) == cudaSuccess &&
         cudaMemset(g.arrived, 0, counters) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess;  // run's stream does not wait for the default one
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor* constants, int32_t,
                               void** state) {
  const int64_t M = problem->axes[0].value, N = problem->axes[1].value, K = problem->axes[2].value;
  if (M < 1 || N < kBn || K < kGroup || N % kBn != 0 || K % kGroup != 0) return ASSAY_UNSUPPORTED;
  State* s = new State{};
  s->args.w_q = static_cast<const uint8_t*>(constants[0].data);
  s->args.scales = static_cast<const Bf16*>(constants[1].data);
  s->args.zeros = static_cast<const Bf16*>(constants[2].data);
  s->args.M = M, s->args.N = N, s->args.K = K;
  const bool ready = M <= 16 ? prepare<16>(*s) : M <= 32 ? prepare<32>(*s) : prepare<64>(*s);
  if (!ready) {
    assay_release(s);
    return ASSAY_FAILED;
  }
  *state = s;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const State& s = *static_cast<State*>(state);
  s.kernel<<<s.grid, kThreads, static_cast<size_t>(s.shared_bytes),
             static_cast<cudaStream_t>(stream)>>>(s.args, static_cast<const Bf16*>(inputs[0].data),
                                                  static_cast<Bf16*>(outputs[0].data));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  State* s = static_cast<State*>(state);
  cudaFree(s->args.partials);
  cudaFree(s->args.arrived);
  delete s;
}
