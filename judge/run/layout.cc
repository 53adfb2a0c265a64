// SPDX-License-Identifier: Apache-2.0
#include "judge/run/layout.h"

#include "judge/base/hash.h"
#include "runner/abi/assay/kernel.h"

namespace assay {
namespace {

constexpr std::int64_t kAligned = 256;

std::int64_t round_up(std::int64_t v, std::int64_t to) {
  return (v + to - 1) / to * to;
}

}  // namespace

Placement place(const std::vector<PlacementRequest>& requests, std::int64_t granularity,
                bool flush_end, std::uint64_t seed) {
  Placement p;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::uint64_t bits = derive_seed(seed, "gap", i);
    const std::int64_t gap = kGuardBytes + static_cast<std::int64_t>(bits % 16) * kAligned;
    at = round_up(at + gap, kAligned);
    if (requests[i].odd)  // 16, 48, 80, ... 240 past a multiple of 256
      at += ASSAY_ALIGNMENT * (1 + 2 * static_cast<std::int64_t>((bits >> 32) % 8));
    p.offsets.push_back(at);
    at += requests[i].bytes;
  }
  if (flush_end && !requests.empty()) {
    p.arena_bytes = round_up(at, granularity);
    const std::int64_t last = p.arena_bytes - requests.back().bytes;
    p.offsets.back() = last / ASSAY_ALIGNMENT * ASSAY_ALIGNMENT;
  } else {
    p.arena_bytes = round_up(at + kGuardBytes, granularity);
  }
  return p;
}

}  // namespace assay
