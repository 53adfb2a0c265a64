// SPDX-License-Identifier: Apache-2.0
// What the judge makes of a runner's reply. Pure functions over hostile data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "judge/base/fault.h"
#include "wire/protocol.h"

namespace assay {

/// What the request at hand may be answered with.
struct ExpectedReply {
  wire::Stage stage = wire::Stage::kSetup;  ///< where it may fail, besides kSetup
  bool window = false;                      ///< success is a WindowDone, not an Ack
  std::size_t calls = 0;                    ///< of the window
};

/// Why `reply` cannot be an honest answer: wrong kind, wrong length, a stamp that is not a finite
/// non-negative number, a failure of another request's stage, success with an error code. nullopt:
/// it can be one, and is still only a claim.
std::optional<std::string> invalid(const wire::Reply& reply, const ExpectedReply& expected);

/// The verdict that a failing Ack (stage is not kNone) of a loaded submission stands for.
SubmissionFault fault_of(const wire::Ack& failure);

/// Text of the submission's choosing made harmless for terminals, JSON and pages: printable ASCII.
std::string printable(const std::string& text);

}  // namespace assay
