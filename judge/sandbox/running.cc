// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/running.h"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/interrupt.h"
#include "judge/base/log.h"
#include "judge/sandbox/command.h"

namespace assay::sandbox {
namespace {

using std::chrono::milliseconds;

constexpr double kStart_us = 30e6;  ///< for a namespace and an exec, on a loaded machine
constexpr double kStop_us = 5e6;    ///< a driver call may hold a thread back for a while
constexpr double kSpin_us = 60;
constexpr double kLook_us = 5e3;      ///< between two looks at memory and tasks
constexpr milliseconds kEnd{20'000};  ///< teardown of a GPU context takes seconds
constexpr milliseconds kSlice{20};

}  // namespace

Running::Running(SandboxKind kind, const SandboxPolicy& policy,
                 const std::vector<std::string>& argv, int passed_fd)
    : kind_(kind), policy_(policy) {
  // Without walls the program may be of our own user: it must not read our memory.
  if (kind == SandboxKind::kNone) ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  launcher_ = spawn(command_line(kind, policy, argv), environment(policy), passed_fd);
  launched_ = ProcessHandle(launcher_.pid);
  try {
    await_start();
  } catch (...) {
    kill_all();
    reap();
    throw;
  }
}

Running::~Running() {
  try {
    finish();
  } catch (const std::exception& e) {
    warn(e.what());
  }
}

// ---- news -------------------------------------------------------------------------------------

void Running::await_start() {
  const double until = now_us() + kStart_us;
  while (!program_ && !ended_ && setup_error_.empty()) {
    if (now_us() > until) throw JudgeError("it did not start within {:g} s", kStart_us / 1e6);
    throw_if_interrupted();
    await_news(kSlice);
    read_reports();
    read_output();
  }
  if (program_) return;
  // Whatever it had to say is in the pipe by the time it has gone.
  launched_.wait_gone(milliseconds(1000));
  read_output();
  std::string why = setup_error_.empty() ? output_ : setup_error_;
  while (!why.empty() && why.back() == '\n') why.pop_back();
  throw JudgeError("{}", why.empty() ? "it ended at once and said nothing" : why);
}

void Running::await_news(milliseconds at_most) {
  pollfd sources[] = {{launcher_.report.get(), POLLIN, 0}, {launcher_.output.get(), POLLIN, 0}};
  // After its last writer is gone the pipe would report that for ever.
  const nfds_t count = ended_ || !launcher_.output ? 1 : 2;
  ::poll(sources, count, static_cast<int>(at_most.count()));
}

void Running::read_reports() {
  while (!ended_) {
    const Report r = receive_report(launcher_.report.get());
    switch (r.kind) {
      case 0:
        return;
      case 'I':
        first_ = ProcessHandle(r.pid);
        break;
      case 'S':
        program_ = ProcessHandle(r.pid);
        break;
      case 'E':
        setup_error_ = r.text;
        break;
      case 'X': {
        int status = 0;
        std::memcpy(&status, r.text.data(), std::min(sizeof status, r.text.size()));
        wait_status_ = status;
        ended_ = true;
        break;
      }
      default:
        ended_ = true;
    }
  }
}

void Running::read_output() {
  char buffer[1 << 16];
  const auto cap = static_cast<std::size_t>(policy_.limits.output_bytes);
  while (launcher_.output) {
    const ssize_t n = ::read(launcher_.output.get(), buffer, sizeof buffer);
    if (n == 0) launcher_.output.reset();
    if (n <= 0) return;
    const auto got = static_cast<std::size_t>(n);
    output_total_bytes_ += n;
    output_.append(buffer, std::min(got, cap - output_.size()));
    if (output_total_bytes_ <= policy_.limits.output_bytes) continue;
    status_.output_exceeded = true;
    kill_all();
    return;
  }
}

bool Running::poll() {
  if (reaped_) return false;
  read_reports();
  read_output();
  if (!ended_ && !killed_) enforce_limits();
  return !ended_ && !killed_;
}

void Running::enforce_limits() {
  // Some callers ask every other millisecond, and looking at a tree of compilers is not free.
  if (now_us() - looked_us_ < kLook_us) return;
  looked_us_ = now_us();
  Usage sum;
  for (const pid_t pid : program_pids()) {
    const Usage u = usage_of(pid, policy_.limits.memory_bytes);
    sum.memory_bytes += u.memory_bytes;
    sum.tasks += u.tasks;
  }
  status_.memory_exceeded = sum.memory_bytes > policy_.limits.memory_bytes;
  status_.tasks_exceeded = sum.tasks > policy_.limits.threads;
  if (status_.memory_exceeded || status_.tasks_exceeded) kill_all();
}

// ---- stopping ---------------------------------------------------------------------------------

std::vector<pid_t> Running::program_pids() const {
  // The runner's filter lets it start no process: nothing to look for.
  if (policy_.program == SandboxPolicy::Program::kRunner) return {program_.pid()};
  return descendants(first_.pid());
}

/// Stops them and returns once none can execute. False: took too long.
bool Running::stop(const std::vector<pid_t>& pids) const {
  const double begin = now_us();
  for (const pid_t pid : pids) ::kill(pid, SIGSTOP);
  for (const pid_t pid : pids)
    while (!is_stopped(pid)) {
      const double waited_us = now_us() - begin;
      if (waited_us > kStop_us) return false;
      // A running thread stops within microseconds. One that waits for a core stops when it gets
      // one, and that may have to be this one.
      if (waited_us > kSpin_us) sleep_us(1);
    }
  return true;
}

void Running::freeze() {
  if (ended_ || killed_) return;
  const double until = now_us() + kStop_us;
  for (std::vector<pid_t> pids = program_pids(), stopped;;) {
    if (!stop(pids) || now_us() > until) return kill_all();
    stopped = std::exchange(pids, program_pids());
    if (stopped == pids) break;  // none has been born meanwhile
  }
  frozen_ = program_pids();
}

void Running::thaw() {
  for (const pid_t pid : std::exchange(frozen_, {})) ::kill(pid, SIGCONT);
}

// ---- ending -----------------------------------------------------------------------------------

void Running::kill_all() {
  if (reaped_) return;
  killed_ = true;
  if (kind_ == SandboxKind::kNone && first_) kill_one_by_one();
  // The end of the first process of a pid namespace is the end of them all. Before there is one,
  // whoever becomes it ends because nobody listens to its reports.
  (first_ ? first_ : launched_).signal(SIGKILL);
}

/// All are stopped before the first is killed: a dead one makes room for another to be born.
/// Orphans move to the first process, which is stopped too: while it buries nobody, its list of
/// children only grows, and reading it misses none.
void Running::kill_one_by_one() {
  const double until = now_us() + kStop_us;
  first_.signal(SIGSTOP);
  std::map<pid_t, ProcessHandle> stopped;
  for (bool grew = true; grew && now_us() < until;) {
    grew = false;
    std::map<pid_t, ProcessHandle> fresh;
    for (const pid_t pid : descendants(first_.pid()))
      if (!stopped.contains(pid)) fresh.emplace(pid, ProcessHandle(pid));
    if (fresh.empty()) break;
    // A number that was free for a moment may be a stranger's by the time it is looked up: one that
    // is still listed after that is ours.
    for (const pid_t pid : descendants(first_.pid())) {
      const auto at = fresh.find(pid);
      if (at == fresh.end()) continue;
      at->second.signal(SIGSTOP);
      stopped.insert(fresh.extract(at));
      grew = true;
    }
  }
  for (const auto& [pid, process] : stopped) process.signal(SIGKILL);
  first_.signal(SIGCONT);
  first_.wait_gone(milliseconds(2000));  // it ends when it has buried them all
}

/// False: something does not die.
bool Running::reap() {
  if (reaped_) return true;
  if (first_ && !first_.wait_gone(kEnd)) return false;
  if (!launched_.wait_gone(milliseconds(first_ ? 1000 : kEnd.count()))) launched_.signal(SIGKILL);
  if (!launched_.wait_gone(kEnd)) return false;
  int status = 0;
  while (::waitpid(launcher_.pid, &status, 0) < 0 && errno == EINTR) continue;
  reaped_ = true;
  return true;
}

ExitStatus Running::finish() {
  if (reaped_) return status_;
  read_reports();
  kill_all();
  if (!reap())
    throw JudgeError("process {} cannot be killed: the machine needs a look (dmesg) and a restart",
                     first_.pid());
  read_reports();
  read_output();
  const int status = wait_status_.value_or(SIGKILL);
  status_.exited = WIFEXITED(status);
  status_.code = status_.exited ? WEXITSTATUS(status) : WTERMSIG(status);
  status_.forbidden_call = !status_.exited && status_.code == SIGSYS;
  return status_;
}

ExitStatus Running::wait(milliseconds deadline) {
  const double until = now_us() + static_cast<double>(deadline.count()) * 1e3;
  while (poll()) {
    throw_if_interrupted();
    if (now_us() > until) {
      status_.deadline_passed = true;
      break;
    }
    await_news(kSlice);
  }
  return finish();
}

}  // namespace assay::sandbox
