// SPDX-License-Identifier: Apache-2.0
// The cuda device of the runner. One call of a window, all on one stream:
//
//   flush | gate | event | the submission's call | event | fingerprint
//
// The flush reads more than the L2 holds; how long that takes varies by a microsecond, so the gate
// waits until the window's pace has passed since the flush began. Nothing else is in the pace: what
// holds up the fingerprint shows on the judge's clock.
// The gate also holds the device back until the host has queued the whole call, so that launch
// latency of the host does not lie between the two events; it opens by itself after a while,
// because a call may queue more than the launch queue holds, or wait for its own work. Where that
// happens again and again calls are no longer held: the latency of the host is then theirs.
#include <cuda_runtime.h>

#include <algorithm>
#include <map>

#include "runner/backend.h"
#include "wire/cuda_memory.h"
#include "wire/digest.h"

namespace assay::runner {
namespace {

constexpr unsigned kGateTimeout_ns = 20'000'000;
constexpr int kSlowWindows = 3;
constexpr int kFingerprintBlocks = 264, kSettledBlocks = 32, kThreads = 256;
constexpr int kMaxOutputs = 8;

__device__ unsigned long long timer_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

/// Notes when it began.
__global__ void read_all(const uint4* data, std::size_t count, unsigned* sink,
                         unsigned long long* begin_ns) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *begin_ns = timer_ns();
  unsigned sum = 0;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  // Enough loads in flight to be bound by the memory, whose clock does not change under load.
  for (; i + 3 * stride < count; i += 4 * stride) {
    const uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride],
                d = data[i + 3 * stride];
    sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^
           d.w;
  }
  for (; i < count; i += stride) sum += data[i].x;
  if (sum == 0x9e3779b9u) *sink = sum;  // never, but the compiler cannot know
}

/// In host memory: a look at it takes the device a microsecond, so the pace is waited for after it.
struct Gate {
  unsigned open;       ///< the turn that may go
  unsigned timed_out;  ///< a call was let go before all of it was queued
};

__global__ void wait_for_turn(volatile Gate* gate, unsigned turn,
                              const volatile unsigned long long* flush_begin_ns, unsigned pace_ns) {
  const unsigned long long begin = timer_ns();
  while (static_cast<int>(gate->open - turn) < 0) {
    if (timer_ns() - begin > kGateTimeout_ns) {
      gate->timed_out = 1;
      break;
    }
    __nanosleep(100);
  }
  const unsigned long long flush_begin = *flush_begin_ns;
  while (timer_ns() - flush_begin < pace_ns) {
  }
}

/// From a step of the timer to the first one at least `ns` later.
__global__ void spin(unsigned ns) {
  const unsigned long long before = timer_ns();
  unsigned long long begin = before;
  while (begin == before) begin = timer_ns();
  while (timer_ns() - begin < ns) {
  }
}

struct Outputs {
  const unsigned char* data[kMaxOutputs];
  std::size_t bytes[kMaxOutputs];
  int count;
};

/// Adds the digest of each output into sums[0 .. count-1], by the blocks of one row of the grid.
__device__ void add_digests(const Outputs& outputs, unsigned long long* sums) {
  for (int o = 0; o < outputs.count; ++o) {
    const unsigned char* data = outputs.data[o];
    const std::size_t bytes = outputs.bytes[o], words = (bytes + 7) / 8;
    const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 8 == 0;
    std::uint64_t sum = 0;
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
         i += stride) {
      const std::uint64_t word = aligned && i * 8 + 8 <= bytes
                                     ? reinterpret_cast<const std::uint64_t*>(data)[i]
                                     : wire::digest_word(data, bytes, i);
      sum += wire::digest_term(word, i);
    }
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0 && sum != 0)
      atomicAdd(sums + o, static_cast<unsigned long long>(sum));
  }
}

/// Right after the call.
__global__ void fingerprint(Outputs outputs, unsigned long long* sums) {
  add_digests(outputs, sums);
}

/// A row of the grid for each call.
__global__ void fingerprint_all(const Outputs* calls, unsigned long long* sums) {
  add_digests(calls[blockIdx.y], sums + std::size_t{blockIdx.y} * kMaxOutputs);
}

/// Grows, never shrinks.
template <class T>
class DeviceArray {
 public:
  ~DeviceArray() { cudaFree(data_); }
  T* at_least(std::size_t n) {
    if (n > n_) {
      cudaFree(data_);
      data_ = nullptr;
      wire::cuda_check(cudaMalloc(&data_, n * sizeof(T)), "cudaMalloc");
      n_ = n;
    }
    return data_;
  }
  T* data() const { return data_; }

 private:
  T* data_ = nullptr;
  std::size_t n_ = 0;
};

/// Translates what goes wrong below into the request loop's exception.
template <class F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const BackendError&) {
    throw;
  } catch (const std::runtime_error& e) {
    throw BackendError(e.what());
  }
}

class CudaBackend final : public RunnerBackend {
 public:
  void open(const wire::Hello& hello) override {
    guarded([&] {
      ordinal_ = hello.device_ordinal;
      wire::cuda_check(cudaSetDevice(ordinal_), "cudaSetDevice");
      wire::cuda_check(cudaFree(nullptr), "opening the device");
      driver_ = std::make_unique<wire::DriverMemory>();
      wire::cuda_check(
          cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal_),
          "cudaDeviceGetAttribute");
      // An ordinary stream: work on the default stream is ordered with it too.
      wire::cuda_check(cudaStreamCreate(&stream_), "cudaStreamCreate");
      void* gate = nullptr;
      wire::cuda_check(cudaHostAlloc(&gate, sizeof(Gate), cudaHostAllocMapped), "cudaHostAlloc");
      gate_ = new (gate) Gate{};
      flush_bytes_ = hello.flush_bytes / sizeof(uint4) * sizeof(uint4);
      wire::cuda_check(cudaMemset(flush_.at_least(flush_bytes_ + sizeof(uint4)), 0, flush_bytes_),
                       "cudaMemset");
      flush_begin_ns_.at_least(1);
      wire::cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    });
  }

  void* map(int fd, std::size_t bytes, bool writable) override {
    return guarded([&] {
      CUmemGenericAllocationHandle handle{};
      driver_->check(driver_->import_handle(&handle, reinterpret_cast<void*>(std::intptr_t{fd}),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     "cuMemImportFromShareableHandle");
      auto mapped =
          std::make_unique<wire::MappedMemory>(*driver_, handle, bytes, ordinal_, writable);
      void* data = mapped->data();
      mappings_[data] = std::move(mapped);
      return data;
    });
  }
  void unmap(void* data) override {
    if (mappings_.erase(data) == 0) throw BackendError("unmap of memory that is not mapped");
  }

  void* stream() override { return stream_; }
  void synchronize() override {
    guarded([] { wire::cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); });
  }

  WindowOutcome run_window(const wire::RunWindow& window, SlotCaller& caller) override {
    return guarded([&] {
      const std::vector<std::uint32_t>& slots = window.slots;
      get_ready(slots.size());
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (const int code = queue_call(i, window, caller); code != 0) {
          gate_->open = turn_;
          wire::cuda_check(cudaDeviceSynchronize(), "the device");
          return WindowOutcome{code, i, {}};
        }
      wire::cuda_check(cudaDeviceSynchronize(), "the device");
      look_at_gate();
      fingerprint_settled(slots, caller);
      return collect(slots, caller);
    });
  }

 private:
  void get_ready(std::size_t calls) {
    undo_set_aside();
    while (events_.size() < 2 * calls) {
      cudaEvent_t e{};
      wire::cuda_check(cudaEventCreate(&e), "cudaEventCreate");
      events_.push_back(e);
    }
    const std::size_t sums = 2 * calls * kMaxOutputs;
    wire::cuda_check(cudaMemsetAsync(sums_.at_least(sums), 0, sums * 8, stream_),
                     "cudaMemsetAsync");
  }

  /// A submission may have set part of the L2 aside for itself, which no flush empties.
  static void undo_set_aside() {
    cudaCtxResetPersistingL2Cache();
    cudaGetLastError();  // not every device has that limit
  }

  int queue_call(std::size_t i, const wire::RunWindow& window, SlotCaller& caller) {
    const std::uint32_t slot = window.slots[i];
    caller.arrange(slot);
    ++turn_;
    std::size_t aside_bytes = 0;
    if (cudaDeviceGetLimit(&aside_bytes, cudaLimitPersistingL2CacheSize) != cudaSuccess)
      cudaGetLastError();
    // Changing the limit takes milliseconds; giving the lines back to everybody is enough.
    if (aside_bytes > 0 && cudaCtxResetPersistingL2Cache() != cudaSuccess) cudaGetLastError();
    read_all<<<8 * multiprocessors_, kThreads, 0, stream_>>>(
        reinterpret_cast<const uint4*>(flush_.data()), flush_bytes_ / sizeof(uint4),
        reinterpret_cast<unsigned*>(flush_.data()), flush_begin_ns_.data());
    wait_for_turn<<<1, 1, 0, stream_>>>(gate_, turn_, flush_begin_ns_.data(), window.pace_ns);
    wire::cuda_check(cudaEventRecord(events_[2 * i], stream_), "cudaEventRecord");
    if (slow_windows_ >= kSlowWindows) gate_->open = turn_;
    int code = 0;
    if (window.control)
      spin<<<1, 1, 0, stream_>>>(wire::kControlCall_ns);
    else
      code = caller.call(slot);
    wire::cuda_check(cudaEventRecord(events_[2 * i + 1], stream_), "cudaEventRecord");
    fingerprint<<<kFingerprintBlocks, kThreads, 0, stream_>>>(outputs_of(slot, caller),
                                                              sums_.data() + i * kMaxOutputs);
    wire::cuda_check(cudaGetLastError(), "a launch");
    gate_->open = turn_;
    return code;
  }

  static Outputs outputs_of(std::uint32_t slot, SlotCaller& caller) {
    const std::span<const OutputRange> ranges = caller.outputs(slot);
    Outputs o{};
    if (ranges.size() > kMaxOutputs) throw BackendError("more outputs than the runner can follow");
    for (const OutputRange& r : ranges) {
      o.data[o.count] = static_cast<const unsigned char*>(r.data);
      o.bytes[o.count++] = r.bytes;
    }
    return o;
  }

  /// One launch for all calls: a launch each would put the host's pace into the judge's clock.
  void fingerprint_settled(const std::vector<std::uint32_t>& slots, SlotCaller& caller) {
    std::vector<Outputs> calls;
    for (const std::uint32_t slot : slots) calls.push_back(outputs_of(slot, caller));
    Outputs* table = table_.at_least(calls.size());
    wire::cuda_check(
        cudaMemcpy(table, calls.data(), calls.size() * sizeof(Outputs), cudaMemcpyHostToDevice),
        "cudaMemcpy");
    fingerprint_all<<<dim3(kSettledBlocks, static_cast<unsigned>(calls.size())), kThreads, 0,
                      stream_>>>(table, sums_.data() + calls.size() * kMaxOutputs);
    wire::cuda_check(cudaGetLastError(), "a launch");
    wire::cuda_check(cudaStreamSynchronize(stream_), "the device");
  }

  void look_at_gate() {
    slow_windows_ += gate_->timed_out != 0;
    gate_->timed_out = 0;
  }

  WindowOutcome collect(std::span<const std::uint32_t> slots, SlotCaller& caller) {
    WindowOutcome out;
    const std::size_t n = slots.size();
    std::vector<unsigned long long> sums(2 * n * kMaxOutputs);
    wire::cuda_check(cudaMemcpy(sums.data(), sums_.data(), sums.size() * 8, cudaMemcpyDeviceToHost),
                     "cudaMemcpy");
    for (std::size_t i = 0; i < n; ++i) {
      float ms = 0;
      wire::cuda_check(cudaEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1]),
                       "cudaEventElapsedTime");
      out.done.call_us.push_back(ms * 1e3f);
      const std::size_t count = caller.outputs(slots[i]).size();
      out.done.returned.push_back(chain(&sums[i * kMaxOutputs], count));
      out.done.settled.push_back(chain(&sums[(n + i) * kMaxOutputs], count));
    }
    return out;
  }

  static std::uint64_t chain(const unsigned long long* sums, std::size_t count) {
    std::uint64_t c = 0;
    for (std::size_t o = 0; o < count; ++o) c = wire::digest_chain(c, sums[o]);
    return c;
  }

  int ordinal_ = 0, multiprocessors_ = 1;
  std::unique_ptr<wire::DriverMemory> driver_;
  std::map<void*, std::unique_ptr<wire::MappedMemory>> mappings_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  DeviceArray<unsigned char> flush_;
  std::size_t flush_bytes_ = 0;
  DeviceArray<unsigned long long> flush_begin_ns_;
  DeviceArray<unsigned long long> sums_;
  DeviceArray<Outputs> table_;
  volatile Gate* gate_ = nullptr;
  int slow_windows_ = 0;  // in which a gate opened by itself
  unsigned turn_ = 0;
};

}  // namespace

std::unique_ptr<RunnerBackend> make_cuda_backend() {
  return std::make_unique<CudaBackend>();
}

}  // namespace assay::runner
