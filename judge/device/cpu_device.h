// SPDX-License-Identifier: Apache-2.0
// The cpu back end: host memory, memfd arenas, OpenBLAS for the oracles' products.
#pragma once

#include <algorithm>
#include <vector>

#include "judge/device/device.h"
#include "judge/device/thread_pool.h"

namespace assay {

class CpuDevice final : public Device {
 public:
  CpuDevice();

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
  std::int64_t runner_flush_bytes() const override { return 0; }
  void synchronize() override {}
  ClockSample sample_clocks() override;
  Ceilings probe(bool quick) override;
  bool healthy() override;
  const ProblemKernels* kernels(const std::string& problem_id) const override;

  // What problems/*/ops.h is written against; see problem/ops.h.
  template <class F>
  void for_each(std::int64_t n, F f) {
    run_chunks(n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) f(i);
    });
  }
  template <class F>
  CompareStats tally(std::int64_t n, F f) {
    std::vector<CompareStats> parts(static_cast<std::size_t>(chunk_count(n)));
    run_chunks(n, [&](std::int64_t begin, std::int64_t end, std::int64_t chunk) {
      for (std::int64_t i = begin; i < end; ++i)
        add(parts[static_cast<std::size_t>(chunk)], f(i), i);
    });
    CompareStats all;
    for (const CompareStats& p : parts) merge(all, p);
    return all;
  }
  CompareStats compare_elements(const Tensor& expected, const Tensor& got, Tolerance t) {
    return tally(expected.size(), [=](std::int64_t i) {
      return compare_element(load_as_float(expected, i), load_as_float(got, i), got.dtype, t);
    });
  }
  void gemm_nt(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
               float* c);
  void gemm_nn(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
               float* c);
  /// Valid until the next call of scratch().
  void* scratch(std::int64_t bytes);

 private:
  /// Chunks depend on n alone, never on the number of threads: sums come out the same everywhere.
  static std::int64_t chunk_elements(std::int64_t n) {
    return std::clamp<std::int64_t>(n / 64, 1, 4096);
  }
  static std::int64_t chunk_count(std::int64_t n) {
    return (n + chunk_elements(n) - 1) / chunk_elements(n);
  }
  template <class F>
  void run_chunks(std::int64_t n, F f) {
    const std::int64_t size = chunk_elements(n);
    pool_.run(chunk_count(n), [&](std::int64_t c) { f(c * size, std::min(n, (c + 1) * size), c); });
  }

  DeviceInfo info_;
  ThreadPool pool_;
  std::unique_ptr<Buffer> scratch_;
};

}  // namespace assay
