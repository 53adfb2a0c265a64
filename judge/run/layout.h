// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in a shared arena: secret offsets, guard zones on both sides.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/device/tensor.h"

namespace assay {

struct Placement {
  std::vector<std::int64_t> offsets;  ///< one per tensor, in the order given
  std::int64_t arena_bytes = 0;
};

/// One tensor to place. `odd`: at an odd multiple of ASSAY_ALIGNMENT (the weakest alignment a
/// submission must cope with); otherwise at a multiple of 256 bytes, as allocators give.
struct PlacementRequest {
  std::int64_t bytes = 0;
  bool odd = false;
};

inline constexpr std::int64_t kGuardBytes =
    256;  ///< at least this much on both sides of every tensor

/// Lays the tensors out in order, with random gaps of kGuardBytes to 4 KiB. If `flush_end`, the
/// last tensor ends within ASSAY_ALIGNMENT - 1 bytes of the arena's end, so that reading past it
/// leaves the mapping. arena_bytes is a multiple of `granularity`.
Placement place(const std::vector<PlacementRequest>& requests, std::int64_t granularity,
                bool flush_end, std::uint64_t seed);

}  // namespace assay
