// SPDX-License-Identifier: Apache-2.0
#include "judge/device/cpu_cache.h"

#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace assay {

#if defined(__x86_64__)
namespace {

constexpr std::int64_t kLine = 64;

bool has_clflushopt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
}

__attribute__((target("clflushopt"))) void evict_fast(const char* p, const char* end) {
  for (; p < end; p += kLine) _mm_clflushopt(const_cast<char*>(p));
}

}  // namespace

void evict_lines(const void* data, std::int64_t bytes) {
  static const bool fast = has_clflushopt();
  const auto* p = static_cast<const char*>(data);
  if (fast)
    evict_fast(p, p + bytes);
  else
    for (std::int64_t i = 0; i < bytes; i += kLine) _mm_clflush(p + i);
  if (bytes > 0) _mm_clflush(p + bytes - 1);
  _mm_mfence();
}
#else
void evict_lines(const void*, std::int64_t) {
  static std::vector<char> other(std::size_t{256} << 20, 1);
  volatile char sink = 0;
  for (std::size_t i = 0; i < other.size(); i += 64) sink = sink + other[i];
}
#endif

}  // namespace assay
