// SPDX-License-Identifier: Apache-2.0
#include "wire/codec.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/unit/wire/generators.h"

namespace assay::wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes(std::initializer_list<int> values) {
  Bytes out;
  for (int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

Bytes with(Bytes b, std::size_t at, int value) {
  b.at(at) = static_cast<std::byte>(value);
  return b;
}

RC_GTEST_PROP(Codec, RequestsSurviveTheRoundTrip, ()) {
  const Request m = testing::request();
  const Bytes b = encode(m);
  RC_ASSERT(b.size() <= kMaxMessageBytes);
  const auto back = decode_request(b);
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == m);
}

RC_GTEST_PROP(Codec, RepliesSurviveTheRoundTripBitForBit, ()) {
  const Bytes b = encode(testing::reply());
  const auto back = decode_reply(b);
  RC_ASSERT(back.has_value());
  RC_ASSERT(encode(*back) == b);  // == on floats would miss NaNs
}

RC_GTEST_PROP(Codec, EveryTruncationAndEveryExtraByteIsRefused, ()) {
  const Bytes request = encode(testing::request());
  const Bytes reply = encode(testing::reply());
  for (std::size_t n = 0; n < request.size(); n += 1 + n / 64)
    RC_ASSERT(!decode_request(std::span(request).first(n)).has_value());
  for (std::size_t n = 0; n < reply.size(); n += 1 + n / 64)
    RC_ASSERT(!decode_reply(std::span(reply).first(n)).has_value());
  RC_ASSERT(!decode_request(std::span(request).first(request.size() - 1)).has_value());
  RC_ASSERT(!decode_reply(std::span(reply).first(reply.size() - 1)).has_value());
  const auto extra = *rc::gen::arbitrary<std::uint8_t>();
  Bytes longer = request;
  longer.push_back(std::byte{extra});
  RC_ASSERT(!decode_request(longer).has_value());
  longer = reply;
  longer.push_back(std::byte{extra});
  RC_ASSERT(!decode_reply(longer).has_value());
}

RC_GTEST_PROP(Codec, WhateverDecodesHasExactlyThatEncoding, ()) {
  Bytes b = *rc::gen::arbitrary<bool>() ? encode(testing::request()) : encode(testing::reply());
  const auto flips = *rc::gen::inRange(1, 4);
  for (int i = 0; i < flips; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, std::min<std::size_t>(b.size(), 64));
    b[at] = static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
  }
  if (const auto m = decode_request(b)) RC_ASSERT(encode(*m) == b);
  if (const auto m = decode_reply(b)) RC_ASSERT(encode(*m) == b);
}

TEST(Codec, WritesTheLayoutThatTheHeaderStates) {
  EXPECT_EQ(encode(Request(MapArena{0x01020304, 5, true})),
            bytes({1, 4, 3, 2, 1, 5, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(encode(Request(Shutdown{})), bytes({8}));
  EXPECT_EQ(encode(Request(Load{"/a"})), bytes({3, 2, 0, 0, 0, '/', 'a'}));
  EXPECT_EQ(encode(Reply(Ack{Stage::kRun, -1, "x"})),
            bytes({0, 4, 255, 255, 255, 255, 1, 0, 0, 0, 'x'}));
}

TEST(Codec, RefusesUnknownTagsAndNothing) {
  EXPECT_FALSE(decode_request({}).has_value());
  EXPECT_FALSE(decode_reply({}).has_value());
  for (int tag = 9; tag < 256; ++tag) EXPECT_FALSE(decode_request(bytes({tag})).has_value());
  for (int tag = 2; tag < 256; ++tag) EXPECT_FALSE(decode_reply(bytes({tag})).has_value());
}

TEST(Codec, RefusesEnumeratorsOutOfRange) {
  const Bytes ack = encode(Reply(Ack{}));
  EXPECT_TRUE(decode_reply(with(ack, 1, 4)).has_value());
  for (int stage = 5; stage < 256; ++stage)
    EXPECT_FALSE(decode_reply(with(ack, 1, stage)).has_value());
  const Bytes hello = encode(Request(Hello{}));
  EXPECT_TRUE(decode_request(with(hello, 5, 1)).has_value());
  EXPECT_FALSE(decode_request(with(hello, 5, 2)).has_value());
  const Bytes bind = encode(Request(Bind{0, {TensorRef{}}, {}}));
  const std::size_t dtype_at = 1 + 4 + 4 + 4 + 8;
  EXPECT_TRUE(decode_request(with(bind, dtype_at, kDTypeCount - 1)).has_value());
  EXPECT_FALSE(decode_request(with(bind, dtype_at, kDTypeCount)).has_value());
}

TEST(Codec, RefusesFlagsThatAreNeitherZeroNorOne) {
  const Bytes window = encode(Request(RunWindow{{}, true}));
  EXPECT_TRUE(decode_request(window).has_value());
  for (int v = 2; v < 256; ++v)
    EXPECT_FALSE(decode_request(with(window, window.size() - 5, v)).has_value());
}

TEST(Codec, RefusesTextWithANulByte) {
  const Bytes ack = encode(Reply(Ack{Stage::kRun, 2, "abc"}));
  for (std::size_t back = 1; back <= 3; ++back)
    EXPECT_FALSE(decode_reply(with(ack, ack.size() - back, 0)).has_value());
}

TEST(Codec, RefusesCountsOverTheirBoundEvenIfTheBytesAreThere) {
  const auto count = [](std::uint32_t n) {
    return bytes({static_cast<int>(n & 255), static_cast<int>(n >> 8 & 255),
                  static_cast<int>(n >> 16 & 255), static_cast<int>(n >> 24)});
  };
  for (const std::uint32_t n : {kMaxText, kMaxText + 1}) {
    Bytes load = bytes({3});
    for (std::byte b : count(n)) load.push_back(b);
    load.resize(load.size() + n, std::byte{'a'});
    EXPECT_EQ(decode_request(load).has_value(), n <= kMaxText) << n;
  }
  for (const std::uint32_t n : {kMaxCalls, kMaxCalls + 1}) {
    Bytes window = bytes({7});
    for (std::byte b : count(n)) window.push_back(b);
    window.resize(window.size() + 4 * n + 5);
    EXPECT_EQ(decode_request(window).has_value(), n <= kMaxCalls) << n;
  }
}

TEST(Codec, HugeCountsAllocateNothing) {
  // 0xffffffff and counts whose product with the item size would wrap around 32 bits.
  for (int top : {0x20, 0x40, 0x80, 0xff}) {
    EXPECT_FALSE(decode_reply(bytes({1, 0, 0, 0, top})).has_value());
    EXPECT_FALSE(decode_reply(bytes({1, 0xff, 0xff, 0xff, top, 0, 0, 0, 0})).has_value());
    EXPECT_FALSE(decode_request(bytes({6, 0, 0, 0, 0, 0xff, 0xff, 0xff, top})).has_value());
    EXPECT_FALSE(decode_request(bytes({3, 0xff, 0xff, 0xff, top})).has_value());
  }
  // Within the bound, but not within the message.
  EXPECT_FALSE(decode_reply(bytes({1, 0, 8, 0, 0, 1, 2, 3, 4})).has_value());
}

TEST(Codec, RefusesMessagesOverTheLimit) {
  EXPECT_FALSE(decode_reply(Bytes(kMaxMessageBytes + 1)).has_value());
}

TEST(Codec, WillNotWriteWhatItWouldRefuseToRead) {
  EXPECT_THROW(encode(Reply(Ack{Stage::kRun, 1, std::string(kMaxText + 1, 'a')})),
               std::invalid_argument);
  EXPECT_THROW(encode(Reply(Ack{Stage::kRun, 1, std::string("a\0b", 3)})), std::invalid_argument);
  EXPECT_THROW(encode(Reply(Ack{static_cast<Stage>(5), 1, ""})), std::invalid_argument);
  EXPECT_THROW(encode(Request(RunWindow{std::vector<std::uint32_t>(kMaxCalls + 1), false})),
               std::invalid_argument);
  EXPECT_THROW(encode(Request(Prepare{"p", std::vector<Axis>(kMaxAxes + 1), {}})),
               std::invalid_argument);
}

TEST(Codec, TheLargestMessagesFit) {
  const TensorRef t{1, 2, DType::kF32, std::vector<std::int64_t>(kMaxRank, 3)};
  const Request bind =
      Bind{1, std::vector<TensorRef>(kMaxTensors, t), std::vector<TensorRef>(kMaxTensors, t)};
  const Request prepare = Prepare{std::string(kMaxText, 'p'),
                                  std::vector<Axis>(kMaxAxes, Axis{std::string(kMaxText, 'a'), 1}),
                                  std::vector<TensorRef>(kMaxTensors, t)};
  const Reply done =
      WindowDone{std::vector<float>(kMaxCalls), std::vector<std::uint64_t>(kMaxCalls),
                 std::vector<std::uint64_t>(kMaxCalls)};
  EXPECT_EQ(decode_request(encode(bind)), bind);
  EXPECT_EQ(decode_request(encode(prepare)), prepare);
  EXPECT_EQ(decode_reply(encode(done)), done);
}

TEST(Codec, StampsTravelBitForBitNaNsIncluded) {
  const float odd[] = {std::nanf("7"), -std::numeric_limits<float>::infinity(), -0.0f, 1e-45f};
  const Bytes b = encode(Reply(WindowDone{{odd, odd + 4}, {}, {}}));
  const auto back = decode_reply(b);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(encode(*back), b);
}

}  // namespace
}  // namespace assay::wire
