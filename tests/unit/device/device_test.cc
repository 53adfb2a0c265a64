// SPDX-License-Identifier: Apache-2.0
// The contract of device.h, on every device there is.
#include "judge/device/device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "tests/support/any_device.h"

namespace assay {
namespace {

class DeviceContract : public AnyDevice {};
ASSAY_ON_EVERY_DEVICE(DeviceContract);

struct Golden {
  DType dtype;
  Distribution::Kind kind;
  float a, b;
  std::uint64_t digest;  // of 1003 elements drawn with seed 42
};
// Made on the cpu; every device must give the same bytes, today and in every later version, or old
// records could not be replayed.
constexpr Golden kGolden[] = {
#include "tests/support/golden_fills.inc"
};

TEST_P(DeviceContract, TheSameSeedGivesTheSameBytesEverywhere) {
  for (const Golden& g : kGolden) {
    DeviceArray<std::uint64_t> memory(device(), 1003);
    Tensor t = memory.tensor(g.dtype);
    t.shape[0] = 1003;
    device().fill(t, {g.kind, g.a, g.b, 1}, 42);
    const Range range[] = {{t.data, t.bytes()}};
    const std::uint64_t digest = device().digest(range)[0];
    EXPECT_EQ(digest, g.digest) << fmt::format("{{DType::{}, kind {}}}: 0x{:016x}", name(g.dtype),
                                               static_cast<int>(g.kind), digest);
  }
}

TEST_P(DeviceContract, DigestIsTheHostsWhateverTheAlignment) {
  std::vector<unsigned char> bytes(70'001);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(random_bits(1, i));
  const DeviceArray<unsigned char> memory(device(), bytes);
  for (std::size_t offset : {0u, 1u, 3u, 8u, 16u})
    for (std::size_t n : {1u, 7u, 8u, 9u, 4096u, 65'537u}) {
      const Range r[] = {{memory.data() + offset, static_cast<std::int64_t>(n)}};
      EXPECT_EQ(device().digest(r)[0], wire::digest_host(bytes.data() + offset, n));
    }
}

TEST_P(DeviceContract, AnyChangedByteIsFoundAndTheFirstIsNamed) {
  constexpr std::int64_t kBytes = 300'007;
  const DeviceArray<unsigned char> memory(device(), std::vector<unsigned char>(kBytes + 16));
  const Range ranges[] = {{memory.data() + 3, kBytes}, {memory.data() + 3 + kBytes, 5}};
  const std::uint64_t word = 0x7f93fa11807ec0deULL;
  device().fill_word(ranges, word);
  EXPECT_EQ(device().find_change(ranges, word), (std::vector<std::int64_t>{-1, -1}));
  for (std::int64_t at : {std::int64_t{0}, std::int64_t{7}, kBytes / 2, kBytes - 1}) {
    device().fill_word(ranges, word);
    auto host = memory.get();
    host[static_cast<std::size_t>(3 + at)] ^= 1;
    host[static_cast<std::size_t>(3 + kBytes - 1)] ^= 0x80;
    device().upload(memory.data(), host.data(), static_cast<std::int64_t>(host.size()));
    device().synchronize();
    EXPECT_EQ(device().find_change(ranges, word),
              (std::vector<std::int64_t>{at == kBytes - 1 ? at : at, -1}));
  }
}

TEST_P(DeviceContract, ScaleMultipliesAndRounds) {
  const DeviceArray<Bf16> memory(device(), std::vector<Bf16>{to_bf16(3), to_bf16(-1.5f)});
  device().scale(memory.tensor(DType::kBf16), 0.1f);
  const auto got = memory.get();
  EXPECT_EQ(got[0].bits, to_bf16(3 * 0.1f).bits);
  EXPECT_EQ(got[1].bits, to_bf16(-1.5f * 0.1f).bits);
}

TEST_P(DeviceContract, ArenasHoldWhatIsWrittenAndHaveADescriptor) {
  const std::int64_t bytes = device().arena_granularity();
  const auto arena = device().allocate_arena(bytes, true);
  EXPECT_EQ(arena->bytes(), bytes);
  EXPECT_GE(arena->fd(), 0);
  const Range all[] = {{arena->data(), bytes}};
  device().fill_word(all, 7);
  EXPECT_EQ(device().find_change(all, 7)[0], -1);
}

TEST_P(DeviceContract, FlushLeavesTheDataAlone) {
  const DeviceArray<std::uint64_t> memory(device(), std::vector<std::uint64_t>(1000, 5));
  const Range r[] = {{memory.data(), 8000}};
  device().flush_caches(r);
  EXPECT_EQ(memory.get(), std::vector<std::uint64_t>(1000, 5));
}

TEST_P(DeviceContract, IsHealthyAndKnowsItself) {
  EXPECT_TRUE(device().healthy());
  EXPECT_FALSE(device().info().name.empty());
  EXPECT_FALSE(device().info().key.empty());
  EXPECT_GT(device().info().memory_bytes, 0);
}

TEST(CpuDevice, InputsCannotBeMappedForWriting) {
  const auto device = open_cpu_device();
  const auto bytes = static_cast<std::size_t>(device->arena_granularity());
  const auto sealed = device->allocate_arena(static_cast<std::int64_t>(bytes), false);
  EXPECT_EQ(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sealed->fd(), 0),
            MAP_FAILED);
  void* read_only = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, sealed->fd(), 0);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_NE(::mprotect(read_only, bytes, PROT_READ | PROT_WRITE), 0);
  ::munmap(read_only, bytes);
  *static_cast<char*>(sealed->data()) = 1;  // the judge still may
}

TEST(CudaDevice, AbsenceIsOneClearLine) {
  std::string why;
  if (cuda_available(&why)) GTEST_SKIP() << "there is a GPU here";
  EXPECT_FALSE(why.empty());
  try {
    open_cuda_device(0);
    FAIL() << "it opened";
  } catch (const JudgeError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("no CUDA device: ", 0), 0u) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
}

TEST(Compare, NonFiniteIsWorseThanAnyError) {
  CompareStats s;
  add(s, compare_element(1, 100, DType::kF32, {0, 0}), 0);
  add(s, compare_element(1, NAN, DType::kF32, {0, 0}), 1);
  add(s, compare_element(1, 1000, DType::kF32, {0, 0}), 2);
  EXPECT_EQ(s.bad, 3);
  EXPECT_EQ(s.non_finite, 1);
  EXPECT_EQ(s.worst_index, 1);
}
TEST(Compare, NaNIsNoWildcardAndInfinityMustMatch) {
  EXPECT_TRUE(compare_element(1, NAN, DType::kF32, {1e9f, 1}).bad);
  EXPECT_TRUE(compare_element(INFINITY, 1, DType::kF32, {1e9f, 1}).bad);
  EXPECT_FALSE(compare_element(INFINITY, INFINITY, DType::kF32, {0, 0}).bad);
  EXPECT_TRUE(compare_element(INFINITY, -INFINITY, DType::kF32, {1e9f, 1}).bad);
}
TEST(Compare, MergingInAnyOrderFindsTheSameWorst) {
  CompareStats a, b;
  add(a, compare_element(1, 3, DType::kF32, {0, 0}), 7);
  add(b, compare_element(1, 3, DType::kF32, {0, 0}), 2);
  CompareStats ab = a, ba = b;
  merge(ab, b);
  merge(ba, a);
  EXPECT_EQ(ab.worst_index, 2);
  EXPECT_EQ(ba.worst_index, 2);
  EXPECT_EQ(ab.count, 2);
}

}  // namespace
}  // namespace assay
