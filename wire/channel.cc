// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "wire/protocol.h"

namespace assay::wire {
namespace {

/// A peer that does not even let one message into its queue for this long counts as gone. It cannot
/// happen to an honest one: there is never more than one message under way.
constexpr int kSendTimeoutMs = 5000;

/// poll() for one event, resumed after signals. False: timed out.
bool wait_for(int fd, short events, int timeout_ms) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (int left = timeout_ms;;) {
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, left);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return true;  // let the call that follows report it
    if (timeout_ms < 0) continue;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    left = static_cast<int>(std::max<std::int64_t>(rest.count(), 0));
  }
}

bool hung_up(int fd) {
  pollfd p{fd, POLLRDHUP, 0};
  return ::poll(&p, 1, 0) > 0;
}

/// Takes the descriptors out of `header`: the only one if it may come, else none. False: a surplus
/// one.
bool take_fds(msghdr& header, int* received_fd) {
  bool fine = (header.msg_flags & MSG_CTRUNC) == 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<unsigned char*>(c) + at, sizeof fd);
      if (received_fd != nullptr && *received_fd < 0) {
        *received_fd = fd;
      } else {
        ::close(fd);
        fine = false;
      }
    }
  }
  if (!fine && received_fd != nullptr && *received_fd >= 0) {
    ::close(*received_fd);
    *received_fd = -1;
  }
  return fine;
}

}  // namespace

bool Channel::send(std::span<const std::byte> message, int fd_to_pass) {
  iovec io{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (fd_to_pass >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd_to_pass, sizeof fd_to_pass);
  }
  for (;;) {
    const ssize_t n = ::sendmsg(fd_, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return true;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(fd_, POLLOUT, kSendTimeoutMs)) return false;
  }
}

Receive Channel::receive(std::vector<std::byte>& message, int timeout_ms, int* received_fd) {
  message.clear();
  if (received_fd != nullptr) *received_fd = -1;
  if (!wait_for(fd_, POLLIN, timeout_ms)) return Receive::kTimeout;

  buffer_.resize(kMaxMessageBytes);
  iovec io{buffer_.data(), buffer_.size()};
  // Without room for control data the kernel itself drops whatever descriptors come and says so.
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (received_fd != nullptr) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  ssize_t n = 0;
  do {
    n = ::recvmsg(fd_, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? Receive::kTimeout : Receive::kClosed;
  if (!take_fds(header, received_fd) || (header.msg_flags & MSG_TRUNC) != 0)
    return Receive::kViolation;
  // An empty datagram and the end of the connection both read as 0 bytes.
  if (n == 0) return hung_up(fd_) ? Receive::kClosed : Receive::kViolation;
  message.assign(buffer_.begin(), buffer_.begin() + n);
  return Receive::kMessage;
}

}  // namespace assay::wire
