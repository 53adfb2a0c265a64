// SPDX-License-Identifier: Apache-2.0
// Spins for a time it is told (axis spin_ns) by the GPU's global timer: a kernel of known duration.
#include <assay/kernel.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace {

__device__ unsigned long long timer_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

/// From one step of the timer to the first that is `ns` later: the reading of a timer is up to a
/// step old.
__global__ void spin(unsigned long long ns) {
  const unsigned long long before = timer_ns();
  unsigned long long begin = before;
  while (begin == before) begin = timer_ns();
  while (timer_ns() - begin < ns) {
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor*, int32_t,
                               void** state) {
  *state = new int64_t(problem->axes[0].value);
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor*, int32_t, const assay_tensor*, int32_t,
                           void* stream) {
  spin<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<unsigned long long>(*static_cast<int64_t*>(state)));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<int64_t*>(state);
}
