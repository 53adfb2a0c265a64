// SPDX-License-Identifier: Apache-2.0
#include "runner/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

namespace assay::runner {
namespace {

void on_child(int) {}

/// SIGCHLD stays blocked but inside await_news(), so that no child's end is slept through.
sigset_t block_sigchld() {
  struct sigaction action {};
  action.sa_handler = on_child;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGCHLD, &action, nullptr);
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  return before;
}

/// Until a child has changed or the judge is gone (then: true).
bool await_news(int report, const sigset_t& waiting) {
  pollfd judge{report, 0, 0};
  return ::ppoll(&judge, 1, nullptr, &waiting) > 0;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  if (FILE* f = std::fopen("/proc/thread-self/children", "re")) {
    for (pid_t pid = 0; std::fscanf(f, "%d", &pid) == 1;) found.push_back(pid);
    std::fclose(f);
  }
  return found;
}

/// Orphans of the killed become children of this process: done when there are none. The end of the
/// first process of a pid namespace does all that at once.
void kill_all(pid_t program) {
  if (::getpid() == 1) return;
  ::kill(program, SIGKILL);
  do {
    for (const pid_t pid : children()) ::kill(pid, SIGKILL);
  } while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

void keep_only(int report) {
  if (report > 0) ::close_range(0, static_cast<unsigned>(report) - 1, 0);
  ::close_range(static_cast<unsigned>(report) + 1, ~0U, 0);
}

void send_report(int report, char kind, const void* data, std::size_t bytes) {
  std::string message(1, kind);
  message.append(static_cast<const char*>(data), bytes);
  ::send(report, message.data(), message.size(), MSG_NOSIGNAL);
}

int watch(int report, pid_t program, const sigset_t& waiting) {
  keep_only(report);  // a dead program's socket and output must not stay open here
  for (;;) {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != program) continue;
      send_report(report, 'X', &status, sizeof status);
      kill_all(program);
      return 0;
    }
    if (await_news(report, waiting)) {
      kill_all(program);
      return 0;
    }
  }
}

}  // namespace

int report_error(int report, const std::string& text) {
  std::fprintf(stderr, "assay-runner: %s\n", text.c_str());
  if (report >= 0) send_report(report, 'E', text.data(), text.size());
  return 3;
}

int supervise(int report, const std::function<std::string()>& enter,
              const std::function<int()>& program) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // nothing of this process is for the program to read
  const sigset_t before = block_sigchld();
  send_report(report, 'I', nullptr, 0);
  const pid_t child = ::fork();
  if (child < 0) return report_error(report, std::string("fork: ") + std::strerror(errno));
  if (child > 0) {
    sigset_t waiting = before;
    ::sigdelset(&waiting, SIGCHLD);
    return watch(report, child, waiting);
  }
  ::signal(SIGCHLD, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::setpgid(0, 0);
  if (const std::string error = enter(); !error.empty()) ::_exit(report_error(report, error));
  send_report(report, 'S', nullptr, 0);
  ::close(report);
  return program();
}

}  // namespace assay::runner
