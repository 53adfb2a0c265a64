// SPDX-License-Identifier: Apache-2.0
// What this processor reaches: streaming memory, and multiply-adds that never leave the registers.
// A library's matrix product would be no ceiling: good submissions beat it.
#include <immintrin.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "judge/base/clock.h"
#include "judge/base/interrupt.h"
#include "judge/device/cpu_device.h"

namespace assay {
namespace {

/// Best of several: a ceiling is what the machine can do, not what it did while disturbed.
template <class F>
double best_us(int times, F&& f) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    throw_if_interrupted();
    const double begin = now_us();
    f();
    best = std::min(best, now_us() - begin);
  }
  return best;
}

bool has_flag(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string w; words >> w;)
      if (w == flag) return true;
    return false;
  }
  return false;
}

std::uint64_t sum_words(const std::uint64_t* p, std::int64_t words) {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  for (std::int64_t i = 0; i + 4 <= words; i += 4) {
    a += p[i];
    b += p[i + 1];
    c += p[i + 2];
    d += p[i + 3];
  }
  return a + b + c + d;
}

// Independent chains, enough of them to hide the latency of a multiply-add in two units.
[[gnu::target("avx512f")]] float chains_16_lanes(std::int64_t rounds) {
  __m512 sum[16];
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (__m512& s : sum) s = b;
  for (std::int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, a, b);
  for (int i = 1; i < 16; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  return _mm512_cvtss_f32(sum[0]);
}
[[gnu::target("avx,fma")]] float chains_8_lanes(std::int64_t rounds) {
  __m256 sum[12];
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (__m256& s : sum) s = b;
  for (std::int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, a, b);
  for (int i = 1; i < 12; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  return _mm256_cvtss_f32(sum[0]);
}
float chains_4_lanes(std::int64_t rounds) {
  __m128 sum[12];
  const __m128 a = _mm_set1_ps(0.999f), b = _mm_set1_ps(0.001f);
  for (__m128& s : sum) s = b;
  for (std::int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (__m128& s : sum) s = _mm_add_ps(_mm_mul_ps(s, a), b);
  for (int i = 1; i < 12; ++i) sum[0] = _mm_add_ps(sum[0], sum[i]);
  return _mm_cvtss_f32(sum[0]);
}

struct MultiplyAdds {
  float (*chains)(std::int64_t rounds);
  double operations_per_round;
};
MultiplyAdds widest() {
  if (has_flag("avx512f")) return {chains_16_lanes, 2.0 * 16 * 16};
  if (has_flag("fma")) return {chains_8_lanes, 2.0 * 8 * 12};
  return {chains_4_lanes, 2.0 * 4 * 12};
}

}  // namespace

Ceilings CpuDevice::probe(bool quick) {
  Ceilings c;
  const int times = quick ? 3 : 12;
  // Larger than the last-level cache, or the caches would be measured.
  const std::int64_t bytes =
      std::min(info_.memory_bytes / 8, std::max<std::int64_t>(2 * info_.cache_bytes, 256 << 20));
  const std::int64_t piece = bytes / info_.units / 2 / 64 * 64;
  const auto buffer = allocate(bytes);
  auto* base = static_cast<char*>(buffer->data());
  const auto each = [&](auto&& work) {
    pool_.run(info_.units, [&](std::int64_t t) {
      char* from = base + 2 * t * piece;
      work(static_cast<std::size_t>(t), from);
    });
  };
  const double total = static_cast<double>(piece) * info_.units;
  const auto rate = [&](double share, auto&& work) {
    return share * total / best_us(times, [&] { each(work); }) * 1e6;
  };
  const auto size = static_cast<std::size_t>(piece);
  std::vector<std::uint64_t> sink(static_cast<std::size_t>(info_.units));
  c["write"] = rate(2, [&](std::size_t, char* p) { std::memset(p, 1, 2 * size); });
  c["read"] = rate(2, [&](std::size_t t, char* p) {
    sink[t] += sum_words(reinterpret_cast<const std::uint64_t*>(p), 2 * piece / 8);
  });
  c["copy"] = rate(2, [&](std::size_t, char* p) { std::memcpy(p + piece, p, size); });

  constexpr std::int64_t kRounds = 400'000;  // some ten milliseconds
  const MultiplyAdds units = widest();
  std::vector<float> results(static_cast<std::size_t>(info_.units));
  const double us = best_us(4 * times, [&] {
    pool_.run(info_.units, [&](std::int64_t t) {
      results[static_cast<std::size_t>(t)] = units.chains(kRounds);
    });
  });
  c["fp32"] = units.operations_per_round * kRounds * info_.units / us * 1e6;
  // Narrow formats in proportion to the width of the instructions this processor has for them.
  const Ceilings bounds = cpu_bounds(info_.units);
  for (const char* key : {"bf16", "int8", "fp8"})
    c[key] = c["fp32"] * bounds.at(key) / bounds.at("fp32");
  return c;
}

Ceilings cpu_bounds(int threads) {
  constexpr double kHz = 5e9, kBytesPerThread = 64e9;
  // Two fused multiply-adds a cycle; AMX has 16 times the fp32 rate of AVX-512 in bf16, 32 in int8.
  const double lanes = has_flag("avx512f") ? 16 : has_flag("fma") ? 8 : 4;
  const bool amx = has_flag("amx_tile");
  const bool vnni = has_flag("avx512_vnni") || has_flag("avx_vnni");
  Ceilings c;
  c["fp32"] = threads * kHz * lanes * 4;
  c["bf16"] = c["fp32"] * (amx ? 16 : has_flag("avx512_bf16") ? 2 : 1);
  c["int8"] = c["fp32"] * (amx ? 32 : vnni ? 4 : 2);
  c["fp8"] = c["bf16"];  // e4m3 widens exactly to bf16
  c["dram"] = threads * kBytesPerThread;
  return c;
}

}  // namespace assay
