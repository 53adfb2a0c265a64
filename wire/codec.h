// SPDX-License-Identifier: Apache-2.0
// Bytes of the messages in protocol.h: one tag byte (index in the variant), then the fields in
// order, little endian; a list or string is a u32 count and its items. Decoding never reads past
// the end, never allocates more than the message's own size could fill, and accepts exactly one
// encoding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "wire/protocol.h"

namespace assay::wire {

std::vector<std::byte> encode(const Request&);
std::vector<std::byte> encode(const Reply&);

/// nullopt: not a well-formed message (unknown tag, short, trailing bytes, count over its bound,
/// enum out of range, non-boolean flag, text with a NUL byte).
std::optional<Request> decode_request(std::span<const std::byte>);
std::optional<Reply> decode_reply(std::span<const std::byte>);

}  // namespace assay::wire
