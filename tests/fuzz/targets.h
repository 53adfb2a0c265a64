// SPDX-License-Identifier: Apache-2.0
// What each fuzz target checks, apart from how bytes reach it: libFuzzer in tools/fuzz.sh, the
// committed corpus in the unit tests. A property that does not hold aborts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <span>

#include "judge/run/reply.h"
#include "wire/codec.h"

namespace assay::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Bytes of a request: refused, or exactly what encode() writes for what they decode to.
inline void request(std::span<const std::byte> bytes) {
  if (const auto m = wire::decode_request(bytes)) {
    const auto again = wire::encode(*m);
    require(std::ranges::equal(again, bytes));
    require(wire::decode_request(again) == m);
  }
}

/// The same for replies. Compared as bytes: a NaN differs from itself.
inline void reply(std::span<const std::byte> bytes) {
  if (const auto m = wire::decode_reply(bytes)) {
    require(std::ranges::equal(wire::encode(*m), bytes));
    if (const auto* w = std::get_if<wire::WindowDone>(&*m))
      require(w->call_us.size() <= wire::kMaxCalls && w->returned.size() <= wire::kMaxCalls &&
              w->settled.size() <= wire::kMaxCalls);
  }
}

/// A hostile reply as the session takes it: first byte = what was asked, the rest = the message.
/// What passes is safe for the rest of the judge to use.
inline void session(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const unsigned asked = std::to_integer<unsigned>(bytes[0]);
  const ExpectedReply expected{static_cast<wire::Stage>(asked % 5), (asked & 0x80) != 0,
                               (asked >> 3) & 0xf};
  const auto m = wire::decode_reply(bytes.subspan(1));
  if (!m) return;
  if (const auto why = invalid(*m, expected)) {
    require(!why->empty() && *why == printable(*why));
    return;
  }
  if (const auto* w = std::get_if<wire::WindowDone>(&*m)) {
    require(expected.window && w->call_us.size() == expected.calls &&
            w->returned.size() == expected.calls && w->settled.size() == expected.calls);
    for (const float us : w->call_us) require(us >= 0 && std::isfinite(us));
    return;
  }
  const auto& ack = std::get<wire::Ack>(*m);
  if (ack.stage == wire::Stage::kNone) {
    require(!expected.window && ack.code == 0 && ack.text.empty());
    return;
  }
  const SubmissionFault fault = fault_of(ack);
  require(fault.verdict() == Verdict::kRuntimeError || fault.verdict() == Verdict::kRefused);
  for (const char* c = fault.what(); *c != 0; ++c) require(*c >= 0x20 && *c <= 0x7e);
}

}  // namespace assay::fuzz
