// SPDX-License-Identifier: Apache-2.0
// The cuda back end: the judge's own context on one GPU. Everything runs on the default stream.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "judge/base/fault.h"
#include "judge/device/cublas.h"
#include "judge/device/device.h"
#include "judge/device/nvml.h"

namespace assay {

namespace wire {
struct DriverMemory;
}

inline void cuda_check(cudaError_t e, const char* what) {
  if (e != cudaSuccess) throw JudgeError("{}: {}", what, cudaGetErrorString(e));
}

namespace cuda {

inline constexpr int kThreads = 256;
inline constexpr int kTallyBlocks = 528;

struct Piece;  // cuda_device.cu

template <class F>
__global__ void for_each_kernel(std::int64_t n, F f) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride)
    f(i);
}

/// Each thread adds up a fixed set of elements, the block merges its threads in a fixed tree: the
/// same bits every time.
template <class F>
__global__ void tally_kernel(std::int64_t n, F f, CompareStats* blocks) {
  __shared__ alignas(8) unsigned char memory[kThreads * sizeof(CompareStats)];
  auto* shared = reinterpret_cast<CompareStats*>(memory);
  CompareStats mine;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += stride)
    add(mine, f(i), i);
  shared[threadIdx.x] = mine;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half)
      merge(shared[threadIdx.x], shared[threadIdx.x + static_cast<unsigned>(half)]);
  }
  if (threadIdx.x == 0) blocks[blockIdx.x] = shared[0];
}

}  // namespace cuda

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal);
  ~CudaDevice() override;

  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Buffer> allocate(std::int64_t bytes) override;
  std::unique_ptr<Arena> allocate_arena(std::int64_t bytes, bool runner_writable) override;
  std::int64_t arena_granularity() const override;
  void upload(void* to, const void* host, std::int64_t bytes) override;
  void download(void* host, const void* from, std::int64_t bytes) override;
  void copy(void* to, const void* from, std::int64_t bytes) override;

  void fill(const Tensor& t, const Distribution& d, std::uint64_t seed) override;
  void scale(const Tensor& t, float factor) override;
  void convert(const Tensor& from, const Tensor& to) override;
  void coarsen(const Tensor& t, int bits) override;
  void zero_tails(const Tensor& t, std::int64_t row, std::int64_t keep) override;
  void fill_word(std::span<const Range> ranges, std::uint64_t word) override;
  std::vector<std::int64_t> find_change(std::span<const Range> ranges, std::uint64_t word) override;
  std::vector<std::uint64_t> digest(std::span<const Range> ranges) override;

  void flush_caches(std::span<const Range> live) override;
  std::int64_t runner_flush_bytes() const override;
  void synchronize() override { cuda_check(cudaDeviceSynchronize(), "the device"); }
  ClockSample sample_clocks() override { return nvml_->sample(); }
  Ceilings probe(bool quick) override;
  bool healthy() override;
  const ProblemKernels* kernels(const std::string& problem_id) const override;

  // What problems/*/ops.h is written against; see problem/ops.h.
  template <class F>
  void for_each(std::int64_t n, F f) {
    if (n <= 0) return;
    const std::int64_t blocks = (n + cuda::kThreads - 1) / cuda::kThreads;
    cuda::for_each_kernel<<<static_cast<unsigned>(std::min<std::int64_t>(blocks, 1 << 20)),
                            cuda::kThreads>>>(n, f);
    cuda_check(cudaGetLastError(), "a launch");
  }
  template <class F>
  CompareStats tally(std::int64_t n, F f) {
    const auto blocks = static_cast<unsigned>(
        std::clamp<std::int64_t>((n + cuda::kThreads - 1) / cuda::kThreads, 1, cuda::kTallyBlocks));
    cuda::tally_kernel<<<blocks, cuda::kThreads>>>(n, f, tally_memory());
    cuda_check(cudaGetLastError(), "a launch");
    return merge_tally(static_cast<int>(blocks));
  }
  CompareStats compare_elements(const Tensor& expected, const Tensor& got, Tolerance t);
  void gemm_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
               float* c) {
    cublas().sgemm(true, m, n, k, a, b, c);
  }
  void gemm_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
               float* c) {
    cublas().sgemm(false, m, n, k, a, b, c);
  }
  /// Valid until the next call of scratch().
  void* scratch(std::int64_t bytes);

 private:
  Cublas& cublas();
  CompareStats* tally_memory();
  CompareStats merge_tally(int blocks);
  /// The ranges cut into pieces, on the device.
  const cuda::Piece* cut(std::span<const Range> ranges, int& count);

  DeviceInfo info_;
  std::unique_ptr<wire::DriverMemory> driver_;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<Buffer> scratch_, tally_, pieces_, results_, flush_;
};

}  // namespace assay
