// SPDX-License-Identifier: Apache-2.0
// The one interface between the judge and the memory, clocks and arithmetic of a device. Two
// implementations: cpu_device.h and cuda_device.cuh. Everything the judge does to data goes through
// here, so that every stage runs unchanged on both.
//
// All operations are in order and on the judge's side only; a call may return before its work is
// done, synchronize() waits. Errors of the device are JudgeError (the judge's context is never
// shared with a submission's).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "judge/base/fd.h"
#include "judge/device/compare.h"
#include "judge/device/tensor.h"
#include "wire/protocol.h"

namespace assay {

struct ProblemKernels;  // problem/ops.h

struct DeviceInfo {
  wire::Backend backend = wire::Backend::kCpu;
  int ordinal = 0;
  std::string name;     ///< "NVIDIA H200", or the CPU's model name
  std::string driver;   ///< driver version, or the kernel release
  std::string runtime;  ///< CUDA runtime version; empty on the cpu
  std::string key;  ///< hardware identity for boards and ceilings: name, memory, threads; a slug
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;  ///< last-level cache
  int units = 0;                 ///< multiprocessors, or hardware threads
  int arch = 0;                  ///< compute capability * 10 (90); 0 on the cpu
};

/// Judge-only memory, freed by the destructor.
class Buffer {
 public:
  virtual ~Buffer() = default;
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 protected:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Memory that a runner can map through fd(): a memfd (cpu) or an exported allocation (cuda). If
/// not runner_writable: on the cpu a real wall (sealed against future writable maps), on cuda a
/// tripwire.
class Arena : public Buffer {
 public:
  int fd() const { return fd_.get(); }
  bool runner_writable() const { return writable_; }

 protected:
  UniqueFd fd_;
  bool writable_ = false;
};

/// A piece of memory named by address, for batched operations.
struct Range {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

/// How the elements of a tensor are drawn. The value is multiplied by `scale`, then rounded to the
/// dtype.
struct Distribution {
  enum class Kind : std::uint8_t { kNormal, kUniform, kIntegers, kConstant } kind = Kind::kNormal;
  float a = 1;  ///< normal: sigma; uniform: low; integers: low; constant: the value
  float b = 0;  ///< normal: mean; uniform: high; integers: one past the high
  float scale = 1;
};

/// The element that fill() stores at `i`.
ASSAY_HD inline float draw_element(const Distribution& d, std::uint64_t seed, std::int64_t i) {
  const std::uint64_t counter = static_cast<std::uint64_t>(i);
  float v = d.a;
  if (d.kind == Distribution::Kind::kNormal) v = d.b + d.a * random_normal(seed, counter);
  if (d.kind == Distribution::Kind::kUniform) v = random_uniform(seed, counter, d.a, d.b);
  if (d.kind == Distribution::Kind::kIntegers)
    v = d.a +
        static_cast<float>(random_below(seed, counter, static_cast<std::uint32_t>(d.b - d.a)));
  return v * d.scale;
}

/// The state of the machine at one moment, for throttle detection and the record.
struct ClockSample {
  double core_mhz = 0;       ///< 0 = unknown
  double temperature_c = 0;  ///< 0 = unknown
  double power_w = 0;        ///< 0 = unknown
  bool throttled =
      false;             ///< thermal or hardware slowdown, power brake (not the software power cap)
  double stolen_us = 0;  ///< cpu: time the hypervisor took from this machine since boot
  std::string reasons;   ///< NVML's clock event reasons, spelled out
  int other_processes = 0;  ///< cuda: compute processes on this GPU that are neither the judge nor
                            ///< counted by the caller; -1 = unknown
};

/// Rates this machine reaches, measured by probe(). Keys: "read", "copy", "write" (bytes/s);
/// "fp32", "bf16", "fp8", "int8" (operations/s, multiply and add counted as two).
using Ceilings = std::map<std::string, double>;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // memory
  virtual std::unique_ptr<Buffer> allocate(std::int64_t bytes) = 0;
  virtual std::unique_ptr<Arena> allocate_arena(std::int64_t bytes, bool runner_writable) = 0;
  /// Arenas are multiples of this many bytes (page, or the driver's granularity).
  virtual std::int64_t arena_granularity() const = 0;
  virtual void upload(void* to, const void* host, std::int64_t bytes) = 0;
  virtual void download(void* host, const void* from, std::int64_t bytes) = 0;  ///< synchronous
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;

  // data
  /// Element i becomes draw_element(d, seed, i) rounded to the dtype: the same bytes on every
  /// device.
  virtual void fill(const Tensor& t, const Distribution& d, std::uint64_t seed) = 0;
  /// Multiplies a float tensor by `factor` and rounds back.
  virtual void scale(const Tensor& t, float factor) = 0;
  /// Element i of `to` becomes element i modulo from.size() of `from`, rounded to the dtype.
  virtual void convert(const Tensor& from, const Tensor& to) = 0;
  /// Rounds every element of a float tensor to `bits` stored bits of mantissa (ties to even).
  virtual void coarsen(const Tensor& t, int bits) = 0;
  /// In every row of `row` elements, zeroes those from `keep` on.
  virtual void zero_tails(const Tensor& t, std::int64_t row, std::int64_t keep) = 0;
  /// Writes the 64-bit `word` all over each range (by absolute position in the range; a tail
  /// shorter than 8 bytes gets the word's first bytes). Guard zones and poison.
  virtual void fill_word(std::span<const Range> ranges, std::uint64_t word) = 0;
  /// For each range, the offset of the first byte that is not as fill_word left it, or -1.
  virtual std::vector<std::int64_t> find_change(std::span<const Range> ranges,
                                                std::uint64_t word) = 0;
  /// wire::digest of each range. Synchronous.
  virtual std::vector<std::uint64_t> digest(std::span<const Range> ranges) = 0;

  // measuring
  /// Evicts `live` from every cache (cpu: by line; cuda: by reading more than the L2 holds, after
  /// resetting the persisting-L2 set-aside). Ends synchronised.
  virtual void flush_caches(std::span<const Range> live) = 0;
  /// Bytes the runner should read between calls to empty the L2; 0 where flush_caches suffices.
  virtual std::int64_t runner_flush_bytes() const = 0;
  virtual void synchronize() = 0;
  virtual ClockSample sample_clocks() = 0;
  /// Measures the ceilings (a few seconds). `quick` trades precision for time (under one second).
  virtual Ceilings probe(bool quick) = 0;
  /// A known kernel with a known result in the judge's own context; false: the device is not
  /// healthy.
  virtual bool healthy() = 0;

  /// The device code of a problem, or null.
  virtual const ProblemKernels* kernels(const std::string& problem_id) const = 0;
};

/// What no program on this processor can exceed: its threads at 5 GHz with the widest instructions
/// it has, and more memory traffic than one core can ask for. Keys as in Ceilings, plus "dram".
Ceilings cpu_bounds(int threads);

/// Opens a device. JudgeError with one clear line when it is absent ("no CUDA device: ...").
std::unique_ptr<Device> open_cpu_device();
std::unique_ptr<Device> open_cuda_device(int ordinal);
/// True if open_cuda_device(0) would succeed; the reason otherwise goes to `why`. Cheap, never
/// throws.
bool cuda_available(std::string* why = nullptr);

}  // namespace assay
