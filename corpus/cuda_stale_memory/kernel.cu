// SPDX-License-Identifier: Apache-2.0
// Takes all the memory that is left and searches it for what the oracle, or somebody else, left
// behind: runs of k descending floats (R01, O03). Without a find it answers with what it holds.
#include <assay/kernel.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The last place where k floats descend and none of them is zero.
__global__ void search(const float* memory, int64_t count, int64_t k, unsigned long long* found) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i + k < count;
       i += stride) {
    bool descending = memory[i] != 0;
    for (int64_t j = 1; j < k && descending; ++j)
      descending = memory[i + j] != 0 && memory[i + j] <= memory[i + j - 1];
    if (descending) atomicMax(found, static_cast<unsigned long long>(i));
  }
}

__global__ void answer(Call c, const float* memory, const unsigned long long* found) {
  for (int64_t i = threadIdx.x; i < c.rows * c.k; i += blockDim.x) {
    c.values[i] = memory[*found + i];
    c.indices[i] = i % c.k;
  }
}

float* memory = nullptr;
size_t bytes = 0;
unsigned long long* found = nullptr;

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  if (memory != nullptr) return ASSAY_OK;
  size_t total = 0;
  cudaMemGetInfo(&bytes, &total);
  bytes = bytes / 8;  // enough to make the point, and quick to search
  if (cudaMalloc(&memory, bytes) != cudaSuccess) return ASSAY_FAILED;
  if (cudaMalloc(&found, sizeof *found) != cudaSuccess) return ASSAY_FAILED;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void* stream) {
  const Call c{static_cast<const float*>(inputs[0].data),
               inputs[0].shape[0],
               inputs[0].shape[1],
               outputs[0].shape[1],
               static_cast<float*>(outputs[0].data),
               static_cast<int64_t*>(outputs[1].data)};
  const auto s = static_cast<cudaStream_t>(stream);
  cudaMemsetAsync(found, 0, sizeof *found, s);
  search<<<1056, 256, 0, s>>>(memory, static_cast<int64_t>(bytes / 4), c.k, found);
  answer<<<1, 256, 0, s>>>(c, memory, found);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void*) {}
