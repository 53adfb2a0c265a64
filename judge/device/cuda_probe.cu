// SPDX-License-Identifier: Apache-2.0
// What this GPU reaches. Each figure is the best of many single launches, each after the caches
// were emptied, as the bench times its calls: clocks are then those of short bursts, not of a long
// load.
#include "judge/base/interrupt.h"
#include "judge/device/cuda_device.cuh"

namespace assay {
namespace {

__global__ void read_ahead(const uint4* data, std::int64_t count, unsigned* sink) {
  unsigned sum = 0;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {  // four loads in flight
    const uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride],
                d = data[i + 3 * stride];
    sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^
           d.w;
  }
  for (; i < count; i += stride) sum += data[i].x;
  if (sum == 0x9e3779b9u) *sink = sum;
}
__global__ void write_all(uint4* data, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    data[i] = uint4{1, 2, 3, 4};
}
__global__ void copy_all(uint4* to, const uint4* from, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride)
    to[i] = from[i];
}

__global__ void nothing() {}

class Stopwatch {
 public:
  Stopwatch() {
    cuda_check(cudaEventCreate(&begin_), "cudaEventCreate");
    cuda_check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  template <class F>
  double us(F&& work) {
    cuda_check(cudaEventRecord(begin_), "cudaEventRecord");
    work();
    cuda_check(cudaEventRecord(end_), "cudaEventRecord");
    cuda_check(cudaEventSynchronize(end_), "a probe");
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    return ms * 1e3;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

Ceilings CudaDevice::probe(bool quick) {
  Ceilings c;
  const int times = quick ? 6 : 30;
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  const auto a = allocate(kBytes), b = allocate(kBytes);
  const Range all[] = {{a->data(), kBytes}, {b->data(), kBytes}};
  Stopwatch watch;
  const auto least = [&](auto&& work) {
    double us = 1e30;
    for (int i = 0; i < times; ++i) {
      throw_if_interrupted();
      flush_caches({});
      us = std::min(us, watch.us(work));
    }
    return us;
  };
  // Launch latency is in no time of the bench either.
  const double launch_us = least([] { nothing<<<1, 1>>>(); });
  const auto best = [&](auto&& work) { return least(work) - launch_us; };
  fill_word(all, 0x3c3c3c3c3c3c3c3cULL);
  auto* pa = static_cast<uint4*>(a->data());
  auto* pb = static_cast<uint4*>(b->data());
  const std::int64_t count = kBytes / 16;
  for (int per_unit : {2, 4, 8, 16}) {
    const int blocks = per_unit * info_.units;
    const auto rate = [&](const char* key, double bytes, auto&& work) {
      c[key] = std::max(c[key], bytes / best(work) * 1e6);
    };
    rate("read", kBytes, [&] {
      read_ahead<<<blocks, cuda::kThreads>>>(pa, count, static_cast<unsigned*>(b->data()));
    });
    rate("write", kBytes, [&] { write_all<<<blocks, cuda::kThreads>>>(pa, count); });
    rate("copy", 2 * kBytes, [&] { copy_all<<<blocks, cuda::kThreads>>>(pb, pa, count); });
  }

  // Small random integers and normals as operands: power, and so clocks, depend on the bits.
  const auto operands = [&](DType t) {
    for (const auto& buffer : {a.get(), b.get()}) {
      Tensor x;
      x.data = buffer->data();
      x.dtype = t;
      x.rank = 1;
      x.shape[0] = 8192LL * 8192;
      fill(x, {Distribution::Kind::kNormal, 1, 0, 1}, 1);
    }
  };
  const auto out = allocate(8192LL * 8192 * 4), workspace = allocate(64 << 20);
  const auto product = [&](const char* key, Cublas::Format f, DType t) {
    operands(t);
    for (std::int64_t n : {4096, 8192}) {
      bool works = true;
      const double us = best([&] {
        works =
            cublas().square(f, n, a->data(), b->data(), out->data(), workspace->data(), 64 << 20);
      });
      if (works) c[key] = std::max(c[key], 2.0 * n * n * n / us * 1e6);
    }
  };
  product("bf16", Cublas::Format::kBf16, DType::kBf16);
  product("fp8", Cublas::Format::kFp8, DType::kE4m3);
  product("int8", Cublas::Format::kInt8, DType::kU8);
  operands(DType::kF32);
  const double us = best([&] {
    cublas().sgemm(true, 4096, 4096, 4096, static_cast<const float*>(a->data()),
                   static_cast<const float*>(b->data()), static_cast<float*>(out->data()));
  });
  c["fp32"] = 2.0 * 4096 * 4096 * 4096 / us * 1e6;
  std::erase_if(c, [](const auto& entry) { return !(entry.second > 0); });
  return c;
}

}  // namespace assay
