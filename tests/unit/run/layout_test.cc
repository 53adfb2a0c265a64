// SPDX-License-Identifier: Apache-2.0
#include "judge/run/layout.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace assay {
namespace {

std::vector<PlacementRequest> draw_requests() {
  std::vector<PlacementRequest> r;
  const int n = *rc::gen::inRange(1, 12);
  for (int i = 0; i < n; ++i)
    r.push_back({*rc::gen::inRange<std::int64_t>(1, 9000), *rc::gen::arbitrary<bool>()});
  return r;
}

TEST(Layout, GuardsAlignmentAndBounds) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, bool flush) {
    const auto r = draw_requests();
    const Placement p = place(r, 4096, flush, seed);
    RC_ASSERT(p.arena_bytes % 4096 == 0);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
      RC_ASSERT(p.offsets[i] - end >= kGuardBytes);
      const bool last = i + 1 == r.size();
      if (!(flush && last)) {
        RC_ASSERT(p.offsets[i] % 256 == 0 || r[i].odd);
        if (r[i].odd) RC_ASSERT(p.offsets[i] % 32 == 16);
      }
      end = p.offsets[i] + r[i].bytes;
    }
    RC_ASSERT(end <= p.arena_bytes);
    if (flush)
      RC_ASSERT(p.arena_bytes - end < 16);
    else
      RC_ASSERT(p.arena_bytes - end >= kGuardBytes);
  }));
}

TEST(Layout, AnotherSeedAnotherLayout) {
  const std::vector<PlacementRequest> r(8, {1000, true});
  EXPECT_NE(place(r, 4096, false, 1).offsets, place(r, 4096, false, 2).offsets);
  EXPECT_EQ(place(r, 4096, false, 1).offsets, place(r, 4096, false, 1).offsets);
}

}  // namespace
}  // namespace assay
