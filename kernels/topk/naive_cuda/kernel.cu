// SPDX-License-Identifier: Apache-2.0
// One block per row, k rounds: each finds the first element that comes after the last one taken, in
// descending order with the index as tie-break.
#include <assay/kernel.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kThreads = 1024;

struct Candidate {
  float value;
  int64_t index;  // -1: none
};

/// True if a comes before b in the answer.
__device__ bool before(const Candidate& a, const Candidate& b) {
  if (a.index < 0 || b.index < 0) return a.index >= 0;
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

__global__ void topk(const float* x, float* values, int64_t* indices, int64_t n, int64_t k) {
  __shared__ Candidate best[kThreads];
  const float* row = x + blockIdx.x * n;
  Candidate last{0, -1};
  for (int64_t j = 0; j < k; ++j) {
    Candidate mine{0, -1};
    for (int64_t i = threadIdx.x; i < n; i += kThreads) {
      const Candidate c{row[i], i};
      if ((j == 0 || before(last, c)) && before(c, mine)) mine = c;
    }
    best[threadIdx.x] = mine;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half && before(best[threadIdx.x + half], best[threadIdx.x]))
        best[threadIdx.x] = best[threadIdx.x + half];
    }
    __syncthreads();
    last = best[0];
    __syncthreads();
    if (threadIdx.x == 0) {
      values[blockIdx.x * k + j] = last.value;
      indices[blockIdx.x * k + j] = last.index;
    }
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void* stream) {
  topk<<<static_cast<unsigned>(inputs[0].shape[0]), kThreads, 0,
         static_cast<cudaStream_t>(stream)>>>(
      static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
      static_cast<int64_t*>(outputs[1].data), inputs[0].shape[1], outputs[0].shape[1]);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void*) {}
