// SPDX-License-Identifier: Apache-2.0
#include "wire/digest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::wire {
namespace {

RC_GTEST_PROP(Digest, ChangesWithAnyByteAndNotWithTheAddress, (std::vector<std::uint8_t> data)) {
  RC_PRE(!data.empty());
  const std::uint64_t before = digest_host(data.data(), data.size());
  const auto shift = *rc::gen::inRange<std::size_t>(0, 8);
  std::vector<std::uint8_t> moved(shift, 0xee);
  moved.insert(moved.end(), data.begin(), data.end());
  RC_ASSERT(digest_host(moved.data() + shift, data.size()) == before);
  const auto at = *rc::gen::inRange<std::size_t>(0, data.size());
  data[at] ^= static_cast<std::uint8_t>(*rc::gen::inRange(1, 256));
  RC_ASSERT(digest_host(data.data(), data.size()) != before);
}

TEST(Digest, TellsPositionsApart) {
  const std::uint64_t a[] = {1, 2}, b[] = {2, 1};
  EXPECT_NE(digest_host(a, sizeof a), digest_host(b, sizeof b));
  EXPECT_EQ(digest_host(a, 0), 0u);
}

TEST(Digest, ChainDependsOnOrderAndCount) {
  EXPECT_NE(digest_chain(digest_chain(0, 1), 2), digest_chain(digest_chain(0, 2), 1));
  EXPECT_NE(digest_chain(0, 0), 0u);
}

}  // namespace
}  // namespace assay::wire
