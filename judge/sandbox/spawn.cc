// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "judge/base/fault.h"

namespace assay::sandbox {
namespace {

constexpr int kFirstFree = 10;  // sources lie above every target: no dup2 overwrites a source
constexpr int kPipeBytes = 1 << 20;

[[noreturn]] void fail(const char* step, int error = errno) {
  throw JudgeError("cannot start a process: {}: {}", step, std::strerror(error));
}

UniqueFd lifted(int fd) {
  UniqueFd high(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree));
  if (!high) fail("duplicating a descriptor");
  return high;
}

struct Actions {
  Actions() { ::posix_spawn_file_actions_init(&value); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&value); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  void place(const UniqueFd& from, int to) {
    ::posix_spawn_file_actions_adddup2(&value, from.get(), to);
  }
  posix_spawn_file_actions_t value;
};

/// Nothing of the judge's signal state may leak into the program.
struct Attributes {
  Attributes() {
    ::posix_spawnattr_init(&value);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&value, &none);
    ::posix_spawnattr_setsigdefault(&value, &all);
    ::posix_spawnattr_setflags(&value,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t value;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> p;
  for (const std::string& w : words) p.push_back(const_cast<char*>(w.c_str()));
  p.push_back(nullptr);
  return p;
}

}  // namespace

Spawned spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              int passed_fd) {
  int pipe[2], pair[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) fail("pipe2");
  Spawned s;
  s.output = UniqueFd(pipe[0]);
  const UniqueFd out_low(pipe[1]);
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) fail("socketpair");
  s.report = UniqueFd(pair[0]);
  const UniqueFd report_low(pair[1]);
  const int on = 1;
  if (::setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) fail("SO_PASSCRED");
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  ::fcntl(pipe[0], F_SETPIPE_SZ, kPipeBytes);  // best effort: fewer waits for the judge to read

  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) fail("/dev/null");
  const UniqueFd in = lifted(null.get()), out = lifted(out_low.get()),
                 report = lifted(report_low.get()),
                 passed = lifted(passed_fd >= 0 ? passed_fd : null.get());
  Actions actions;
  actions.place(in, STDIN_FILENO);
  actions.place(out, STDOUT_FILENO);
  actions.place(out, STDERR_FILENO);
  actions.place(passed, kPassed);
  actions.place(report, kReport);
  ::posix_spawn_file_actions_addclosefrom_np(&actions.value, kReport + 1);
  const Attributes attributes;
  const int error = ::posix_spawn(&s.pid, argv[0].c_str(), &actions.value, &attributes.value,
                                  pointers(argv).data(), pointers(environment).data());
  if (error != 0) fail(argv[0].c_str(), error);
  return s;
}

Report receive_report(int fd) {
  char text[1024];
  iovec io{text, sizeof text};
  // Room for the credentials and nothing else: descriptors are dropped by the kernel.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t n = ::recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (n <= 0) return {'Z', -1, ""};
  Report r{text[0], -1, std::string(text + 1, static_cast<std::size_t>(n) - 1)};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred who{};
    std::memcpy(&who, CMSG_DATA(c), sizeof who);
    r.pid = who.pid;
  }
  return r;
}

}  // namespace assay::sandbox
