// SPDX-License-Identifier: Apache-2.0
// Every row is cut into parts of 4096. One block per part finds the k-th largest of its part by its
// bits, eight at a time, and keeps the k candidates; one block per row sorts the candidates of its
// parts. A row of one part is done in one kernel.
//
// Shared memory of a part: its keys (16 KiB), one histogram (1 KiB), k candidates.
#include <assay/kernel.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kPart = 4096, kThreads = 256, kWarps = kThreads / 32, kMaxK = 256;

/// Larger means earlier in the answer: the value's bits in order, then the smaller index.
using Candidate = unsigned long long;

__device__ uint32_t key_of(float v) {
  const uint32_t u = __float_as_uint(v);
  return u & 0x80000000u ? ~u : u | 0x80000000u;
}
__device__ float value_of(uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
__device__ Candidate candidate(uint32_t key, uint32_t index) {
  return static_cast<Candidate>(key) << 32 | (0xffffffffu - index);
}
__device__ void write(Candidate c, float* value, int64_t* index) {
  *value = value_of(static_cast<uint32_t>(c >> 32));
  *index = 0xffffffffu - static_cast<uint32_t>(c);
}

/// The key of the k-th largest of keys[0 .. count-1], how many of that key belong to the k largest,
/// and how many there are.
struct Threshold {
  uint32_t key;
  int wanted, present;
};

__device__ Threshold find_threshold(const uint32_t* keys, int count, int k, int* histogram) {
  __shared__ Threshold t;
  if (threadIdx.x == 0) t = {0, k, 0};
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kThreads) histogram[i] = 0;
    __syncthreads();
    const uint32_t fixed = shift == 24 ? 0u : 0xffffffffu << (shift + 8), prefix = t.key;
    for (int i = threadIdx.x; i < count; i += kThreads)
      if ((keys[i] & fixed) == prefix) atomicAdd(&histogram[keys[i] >> shift & 255], 1);
    __syncthreads();
    if (threadIdx.x < 32) {  // one warp walks down from the top, 32 digits at a time
      int above = 0;
      for (int top = 255; top >= 0; top -= 32) {
        const int digit = top - static_cast<int>(threadIdx.x);
        const int mine = histogram[digit];
        int sum = mine;
        for (int d = 1; d < 32; d *= 2) {
          const int other = __shfl_up_sync(0xffffffffu, sum, d);
          if (static_cast<int>(threadIdx.x) >= d) sum += other;
        }
        const bool reached = above + sum >= t.wanted;
        const unsigned who = __ballot_sync(0xffffffffu, reached);
        if (who != 0) {
          if (static_cast<int>(threadIdx.x) == __ffs(static_cast<int>(who)) - 1) {
            t.key = prefix | static_cast<uint32_t>(digit) << shift;
            t.wanted -= above + sum - mine;
            t.present = mine;
          }
          break;
        }
        above += __shfl_sync(0xffffffffu, sum, 31);
      }
    }
    __syncthreads();
  }
  return t;
}

/// Which of the equal ones are kept must not depend on who comes first: those of the lowest index.
__device__ void keep_first_equal(const uint32_t* keys, int count, int first, const Threshold& t,
                                 Candidate* kept) {
  __shared__ int warp_count[kWarps];
  int taken = 0;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int begin = 0; begin < count && taken < t.wanted; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    const bool equal = i < count && keys[i] == t.key;
    const unsigned who = __ballot_sync(0xffffffffu, equal);
    if (lane == 0) warp_count[warp] = __popc(who);
    __syncthreads();
    int at = taken + __popc(who & ((1u << lane) - 1));
    for (unsigned w = 0; w < kWarps; ++w) {
      if (w < warp) at += warp_count[w];
      taken += warp_count[w];
    }
    if (equal && at < t.wanted) kept[at] = candidate(t.key, static_cast<uint32_t>(first + i));
    __syncthreads();
  }
}

__global__ void select(const float* x, Candidate* candidates, float* values, int64_t* indices,
                       int64_t n, int k) {
  __shared__ uint32_t keys[kPart];
  __shared__ int histogram[256];
  __shared__ Candidate kept[kMaxK];
  __shared__ int larger;
  const int first = static_cast<int>(blockIdx.x) * kPart;
  const int count = n - first < kPart ? static_cast<int>(n - first) : kPart;
  const int wanted = k < count ? k : count;
  const float* part = x + blockIdx.y * n + first;
  for (int i = threadIdx.x; i < count; i += kThreads) keys[i] = key_of(part[i]);
  for (int i = threadIdx.x; i < k; i += kThreads) kept[i] = 0;  // below every number
  if (threadIdx.x == 0) larger = 0;
  __syncthreads();

  const Threshold t = find_threshold(keys, count, wanted, histogram);
  Candidate* equals = kept + (wanted - t.wanted);
  for (int i = threadIdx.x; i < count; i += kThreads)
    if (keys[i] > t.key)
      kept[atomicAdd(&larger, 1)] = candidate(keys[i], static_cast<uint32_t>(first + i));
  keep_first_equal(keys, count, first, t, equals);
  __syncthreads();

  const int64_t row = blockIdx.y;
  if (gridDim.x > 1) {
    for (int i = threadIdx.x; i < k; i += kThreads)
      candidates[(row * gridDim.x + blockIdx.x) * k + i] = kept[i];
    return;
  }
  for (int i = threadIdx.x; i < k; i += kThreads) {  // the whole row: sorted by counting
    int place = 0;
    for (int j = 0; j < k; ++j) place += kept[j] > kept[i];
    write(kept[i], values + row * k + place, indices + row * k + place);
  }
}

/// Bitonic sort of one row's candidates, padded to `size`, a power of two.
__global__ void merge(const Candidate* candidates, float* values, int64_t* indices, int count,
                      int size, int k) {
  extern __shared__ Candidate sorted[];
  const int64_t row = blockIdx.x;
  for (int i = threadIdx.x; i < size; i += blockDim.x)
    sorted[i] = i < count ? candidates[row * count + i] : 0;
  for (int length = 2; length <= size; length *= 2)
    for (int step = length / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int p = threadIdx.x; p < size / 2; p += blockDim.x) {
        const int i = 2 * p - (p & (step - 1)), j = i + step;
        const bool descending = (i & length) == 0;
        const Candidate a = sorted[i], b = sorted[j];
        if ((a < b) == descending) {
          sorted[i] = b;
          sorted[j] = a;
        }
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < k; i += blockDim.x)
    write(sorted[i], values + row * k + i, indices + row * k + i);
}

struct State {
  Candidate* candidates = nullptr;
};

int64_t parts_of(int64_t n) {
  return (n + kPart - 1) / kPart;
}
int power_of_two(int64_t n) {
  int p = 2;
  while (p < n) p *= 2;
  return p;
}

constexpr int kMaxMerge = 6144;  // candidates in 48 KiB of shared memory

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor*, int32_t,
                               void** state) {
  const int64_t B = problem->axes[0].value, n = problem->axes[1].value, k = problem->axes[2].value;
  const int64_t count = parts_of(n) * k;
  if (k > kMaxK || k > n || n > INT32_MAX || B > 65535 ||
      (parts_of(n) > 1 && power_of_two(count) > kMaxMerge))
    return ASSAY_UNSUPPORTED;
  auto* s = new State;
  *state = s;
  if (parts_of(n) == 1) return ASSAY_OK;
  return cudaMalloc(&s->candidates, static_cast<size_t>(B * count) * sizeof(Candidate)) ==
                 cudaSuccess
             ? ASSAY_OK
             : ASSAY_FAILED;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const auto& s = *static_cast<State*>(state);
  const int64_t B = inputs[0].shape[0], n = inputs[0].shape[1], parts = parts_of(n);
  const int k = static_cast<int>(outputs[0].shape[1]);
  auto* values = static_cast<float*>(outputs[0].data);
  auto* indices = static_cast<int64_t*>(outputs[1].data);
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  select<<<dim3(static_cast<unsigned>(parts), static_cast<unsigned>(B)), kThreads, 0,
           cuda_stream>>>(static_cast<const float*>(inputs[0].data), s.candidates, values, indices,
                          n, k);
  if (parts > 1) {
    const int count = static_cast<int>(parts) * k, size = power_of_two(count);
    const int threads = size / 2 < 1024 ? (size / 2 < 32 ? 32 : size / 2) : 1024;
    merge<<<static_cast<unsigned>(B), threads, static_cast<size_t>(size) * sizeof(Candidate),
            cuda_stream>>>(s.candidates, values, indices, count, size, k);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  auto* s = static_cast<State*>(state);
  cudaFree(s->candidates);
  delete s;
}
