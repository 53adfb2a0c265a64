// SPDX-License-Identifier: Apache-2.0
// One end of the SOCK_SEQPACKET pair between judge and runner.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::wire {

enum class Receive {
  kMessage,
  kTimeout,
  kClosed,     ///< the peer is gone
  kViolation,  ///< too large, empty, or carries descriptors where none may come
};

/// Borrows the descriptor; the owner closes it.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  int fd() const { return fd_; }

  /// Sends one message, with `fd_to_pass` attached if >= 0. False: the peer is gone (or, for
  /// several seconds, takes nothing in).
  bool send(std::span<const std::byte> message, int fd_to_pass = -1);

  /// Waits up to `timeout_ms` (-1: for ever) for one message. At most one descriptor is accepted,
  /// and only if `received_fd` is not null (set to -1 when none came; owned by the caller). Any
  /// surplus descriptor is closed and the message is a violation. Never blocks longer than that,
  /// whatever the peer does.
  Receive receive(std::vector<std::byte>& message, int timeout_ms, int* received_fd = nullptr);

 private:
  int fd_;
  std::vector<std::byte> buffer_;  // of the largest message, kept between calls
};

}  // namespace assay::wire
