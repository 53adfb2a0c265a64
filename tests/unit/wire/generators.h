// SPDX-License-Identifier: Apache-2.0
// Random well-formed messages, at and below every bound of protocol.h.
#pragma once

#include <rapidcheck.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/protocol.h"

namespace assay::wire::testing {

template <class T>
std::vector<T> list_of(std::size_t most, const rc::Gen<T>& item) {
  const auto size = *rc::gen::inRange<std::size_t>(0, most + 1);
  return *rc::gen::container<std::vector<T>>(size, item);
}

inline std::string text(std::size_t most = kMaxText) {
  const auto size = *rc::gen::inRange<std::size_t>(0, most + 1);
  return *rc::gen::container<std::string>(size, rc::gen::nonZero<char>());
}

template <class E>
E any_enum(int count) {
  return static_cast<E>(*rc::gen::inRange(0, count));
}

inline TensorRef tensor() {
  TensorRef t;
  t.arena = *rc::gen::arbitrary<std::uint32_t>();
  t.offset_bytes = *rc::gen::arbitrary<std::uint64_t>();
  t.dtype = any_enum<DType>(kDTypeCount);
  t.shape = list_of<std::int64_t>(kMaxRank, rc::gen::arbitrary<std::int64_t>());
  return t;
}

inline rc::Gen<TensorRef> any_tensor() {
  return rc::gen::exec([] { return tensor(); });
}

inline Axis axis() {
  return {text(40), *rc::gen::arbitrary<std::int64_t>()};
}

inline Request request() {
  const auto word = [] { return *rc::gen::arbitrary<std::uint32_t>(); };
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
      return Hello{word(), any_enum<Backend>(2), *rc::gen::arbitrary<std::int32_t>(),
                   *rc::gen::arbitrary<std::int32_t>(), *rc::gen::arbitrary<std::uint64_t>()};
    case 1:
      return MapArena{word(), *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<bool>()};
    case 2:
      return UnmapArena{word()};
    case 3:
      return Load{text()};
    case 4:
      return Prepare{text(40), list_of<Axis>(kMaxAxes, rc::gen::exec([] { return axis(); })),
                     list_of<TensorRef>(kMaxTensors, any_tensor())};
    case 5:
      return Release{};
    case 6:
      return Bind{word(), list_of<TensorRef>(kMaxTensors, any_tensor()),
                  list_of<TensorRef>(kMaxTensors, any_tensor())};
    case 7:
      return RunWindow{list_of<std::uint32_t>(kMaxCalls, rc::gen::arbitrary<std::uint32_t>()),
                       *rc::gen::arbitrary<bool>()};
    default:
      return Shutdown{};
  }
}

/// Stamps of any bit pattern, NaNs included: they travel as they are.
inline Reply reply() {
  if (*rc::gen::arbitrary<bool>())
    return Ack{any_enum<Stage>(5), *rc::gen::arbitrary<std::int32_t>(), text()};
  WindowDone w;
  for (const std::uint32_t bits :
       list_of<std::uint32_t>(kMaxCalls, rc::gen::arbitrary<std::uint32_t>()))
    w.call_us.push_back(std::bit_cast<float>(bits));
  w.returned = list_of<std::uint64_t>(kMaxCalls, rc::gen::arbitrary<std::uint64_t>());
  w.settled = list_of<std::uint64_t>(kMaxCalls, rc::gen::arbitrary<std::uint64_t>());
  return w;
}

}  // namespace assay::wire::testing
