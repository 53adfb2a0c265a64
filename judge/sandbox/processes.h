// SPDX-License-Identifier: Apache-2.0
// Looking at processes from outside, through /proc, and signalling them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "judge/base/fd.h"

namespace assay::sandbox {

/// A process by descriptor where the kernel can (Linux 5.3), so that a recycled pid is never
/// signalled.
class ProcessHandle {
 public:
  ProcessHandle() = default;
  explicit ProcessHandle(pid_t pid);
  explicit operator bool() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// False: still there after `timeout`.
  bool wait_gone(std::chrono::milliseconds timeout) const;

 private:
  pid_t pid_ = -1;
  UniqueFd fd_;
};

/// All processes below `root` (not itself), parents before children. A moving target: a process
/// that forks meanwhile may have a child that is not listed.
std::vector<pid_t> descendants(pid_t root);

/// True if no thread of it can execute: stopped, dead or gone.
bool is_stopped(pid_t pid);

struct Usage {
  std::int64_t memory_bytes = 0;  ///< resident or swapped, private or shared within the sandbox
  int tasks = 0;
};
/// Of a process that is gone: nothing. Memory files that the judge has open (arenas) do not count.
Usage usage_of(pid_t pid, std::int64_t memory_limit_bytes);

/// Threads of all processes of a user, on the whole machine.
int tasks_of_user(uid_t uid);

}  // namespace assay::sandbox
