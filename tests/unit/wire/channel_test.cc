// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "wire/protocol.h"

namespace assay::wire {
namespace {

std::vector<std::byte> bytes_of(std::size_t n, int value = 7) {
  return std::vector<std::byte>(n, static_cast<std::byte>(value));
}

/// Descriptors this process has open.
std::size_t open_fds() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds_.data()), 0);
  }
  void TearDown() override {
    hang_up(0);
    hang_up(1);
  }
  void hang_up(std::size_t end) {
    if (fds_[end] >= 0) ::close(fds_[end]);
    fds_[end] = -1;
  }
  /// What a hostile peer does: any bytes, any number of descriptors.
  void send_raw(std::span<const std::byte> message, std::size_t fd_count) {
    iovec io{const_cast<std::byte*>(message.data()), message.size()};
    std::vector<unsigned char> control(CMSG_SPACE(fd_count * sizeof(int)));
    msghdr h{};
    h.msg_iov = &io;
    h.msg_iovlen = 1;
    if (fd_count > 0) {
      h.msg_control = control.data();
      h.msg_controllen = control.size();
      cmsghdr* c = CMSG_FIRSTHDR(&h);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
      for (std::size_t i = 0; i < fd_count; ++i)
        std::memcpy(CMSG_DATA(c) + i * sizeof(int), &fds_[1], sizeof(int));
    }
    ASSERT_EQ(::sendmsg(fds_[1], &h, MSG_NOSIGNAL), static_cast<ssize_t>(message.size()));
  }

  std::array<int, 2> fds_{-1, -1};
  std::vector<std::byte> got_;
};

TEST_F(ChannelTest, CarriesMessagesWholeAndInOrder) {
  Channel a(fds_[0]), b(fds_[1]);
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, kMaxMessageBytes}) {
    ASSERT_TRUE(a.send(bytes_of(n, static_cast<int>(n % 251))));
    ASSERT_EQ(b.receive(got_, 1000), Receive::kMessage);
    EXPECT_EQ(got_, bytes_of(n, static_cast<int>(n % 251)));
  }
  ASSERT_TRUE(a.send(bytes_of(1, 1)));
  ASSERT_TRUE(a.send(bytes_of(1, 2)));
  ASSERT_EQ(b.receive(got_, 0), Receive::kMessage);
  EXPECT_EQ(got_, bytes_of(1, 1));
  ASSERT_EQ(b.receive(got_, 0), Receive::kMessage);
  EXPECT_EQ(got_, bytes_of(1, 2));
}

TEST_F(ChannelTest, SaysWhenNothingComes) {
  EXPECT_EQ(Channel(fds_[0]).receive(got_, 0), Receive::kTimeout);
  EXPECT_EQ(Channel(fds_[0]).receive(got_, 5), Receive::kTimeout);
}

TEST_F(ChannelTest, SaysWhenThePeerIsGoneButDeliversItsLastWord) {
  Channel a(fds_[0]);
  send_raw(bytes_of(3), 0);
  hang_up(1);
  EXPECT_EQ(a.receive(got_, 1000), Receive::kMessage);
  EXPECT_EQ(a.receive(got_, 1000), Receive::kClosed);
  EXPECT_FALSE(a.send(bytes_of(1)));
}

TEST_F(ChannelTest, RefusesAMessageOverTheLimit) {
  send_raw(bytes_of(kMaxMessageBytes + 1), 0);
  EXPECT_EQ(Channel(fds_[0]).receive(got_, 1000), Receive::kViolation);
}

TEST_F(ChannelTest, AnEmptyDatagramIsNotTheEnd) {
  send_raw({}, 0);
  EXPECT_EQ(Channel(fds_[0]).receive(got_, 1000), Receive::kViolation);
}

TEST_F(ChannelTest, PassesOneDescriptor) {
  Channel a(fds_[0]), b(fds_[1]);
  const int memory = ::memfd_create("x", MFD_CLOEXEC);
  ASSERT_EQ(::write(memory, "abc", 3), 3);
  ASSERT_TRUE(a.send(bytes_of(1), memory));
  int received = -1;
  ASSERT_EQ(b.receive(got_, 1000, &received), Receive::kMessage);
  ASSERT_GE(received, 0);
  EXPECT_NE(::fcntl(received, F_GETFD) & FD_CLOEXEC, 0);
  char text[4] = {};
  EXPECT_EQ(::pread(received, text, 3, 0), 3);
  EXPECT_STREQ(text, "abc");
  ::close(received);
  ::close(memory);
  ASSERT_TRUE(a.send(bytes_of(1)));
  ASSERT_EQ(b.receive(got_, 1000, &received), Receive::kMessage);
  EXPECT_EQ(received, -1);
}

TEST_F(ChannelTest, DescriptorsThatMayNotComeAreDroppedAndReported) {
  const std::size_t before = open_fds();
  Channel a(fds_[0]);
  for (const std::size_t count : {1u, 2u, 3u, 50u, 253u}) {
    send_raw(bytes_of(1), count);
    EXPECT_EQ(a.receive(got_, 1000), Receive::kViolation) << count;
  }
  int received = -1;
  for (const std::size_t count : {2u, 3u, 50u, 253u}) {
    send_raw(bytes_of(1), count);
    EXPECT_EQ(a.receive(got_, 1000, &received), Receive::kViolation) << count;
    EXPECT_EQ(received, -1);
  }
  EXPECT_EQ(open_fds(), before);
}

TEST_F(ChannelTest, DescriptorsWithoutBytesAreReportedToo) {
  const std::size_t before = open_fds();
  send_raw({}, 1);
  EXPECT_EQ(Channel(fds_[0]).receive(got_, 1000), Receive::kViolation);
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace assay::wire
