// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

namespace assay::sandbox {
namespace {

using std::chrono::milliseconds;

std::string read_all(const UniqueFd& fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; fd && (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  return text;
}

/// A whole file of /proc; empty if it is gone.
std::string read_proc(int folder, const char* path) {
  return read_all(UniqueFd(::openat(folder, path, O_RDONLY | O_CLOEXEC)));
}

std::string proc(pid_t pid, const char* rest) {
  return "/proc/" + std::to_string(pid) + rest;
}

/// The entries of a folder that are numbers.
std::vector<pid_t> numbered_entries(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  while (const dirent* e = dir ? ::readdir(dir.get()) : nullptr)
    if (const pid_t n = std::atoi(e->d_name); n > 0) numbers.push_back(n);
  return numbers;
}

/// The text of a stat file from the state on; names may hold spaces and parentheses.
const char* after_name(const std::string& stat) {
  const std::size_t at = stat.rfind(')');
  return at == std::string::npos || at + 2 >= stat.size() ? "" : stat.c_str() + at + 2;
}

/// Kernels without CONFIG_PROC_CHILDREN: everybody's parent, asked one by one.
std::multimap<pid_t, pid_t> all_by_parent() {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numbered_entries("/proc")) {
    const std::string stat = read_proc(AT_FDCWD, proc(pid, "/stat").c_str());
    pid_t parent = 0;
    if (std::sscanf(after_name(stat), "%*c %d", &parent) == 1) children.emplace(parent, pid);
  }
  return children;
}

bool kernel_lists_children() {
  static const bool does = ::access("/proc/thread-self/children", R_OK) == 0;
  return does;
}

void append_children(pid_t pid, std::vector<pid_t>& list) {
  for (const pid_t tid : numbered_entries(proc(pid, "/task"))) {
    const std::string text =
        read_proc(AT_FDCWD, (proc(pid, "/task/") + std::to_string(tid) + "/children").c_str());
    const char* at = text.data();
    const char* const end = at + text.size();
    for (pid_t child = 0; at < end; ++at) {
      const auto [next, error] = std::from_chars(at, end, child);
      if (error != std::errc()) break;
      list.push_back(child);
      at = next;
    }
  }
}

// ---- memory -----------------------------------------------------------------------------------

/// The number behind "Key:" in a status file.
std::int64_t field(const std::string& status, const char* key) {
  const std::size_t at = status.find(key);
  return at == std::string::npos ? 0 : std::atoll(status.c_str() + at + std::strlen(key));
}

using FileId = std::pair<dev_t, ino_t>;

/// The memory files this process has open.
std::set<FileId> own_memory_files() {
  std::set<FileId> files;
  const UniqueFd probe(::memfd_create("assay", MFD_CLOEXEC));
  struct stat of_probe {};
  if (!probe || ::fstat(probe.get(), &of_probe) != 0) return files;
  for (const pid_t fd : numbered_entries("/proc/self/fd")) {
    struct stat s {};
    if (::fstat(fd, &s) == 0 && s.st_dev == of_probe.st_dev) files.emplace(s.st_dev, s.st_ino);
  }
  return files;
}

/// Bytes of `pid`'s address space that show one of `files`; nullopt if it is ending. A program that
/// forbids looking (the runner is readable to begin with) shows none.
std::optional<std::int64_t> mapped_bytes(pid_t pid, const std::set<FileId>& files) {
  const UniqueFd fd(::open(proc(pid, "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == EACCES || errno == EPERM)) return 0;
  std::istringstream maps(read_all(fd));
  std::int64_t bytes = 0, lines = 0;
  for (std::string line; std::getline(maps, line); ++lines) {
    unsigned long begin = 0, end = 0, inode = 0;
    unsigned major = 0, minor = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*x %x:%x %lu", &begin, &end, &major, &minor,
                    &inode) == 5 &&
        files.contains({::makedev(major, minor), inode}))
      bytes += static_cast<std::int64_t>(end - begin);
  }
  return lines == 0 ? std::nullopt : std::optional(bytes);
}

}  // namespace

ProcessHandle::ProcessHandle(pid_t pid)
    : pid_(pid), fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

void ProcessHandle::signal(int number) const {
  if (fd_)
    ::syscall(SYS_pidfd_send_signal, fd_.get(), number, nullptr, 0);
  else if (pid_ > 0)
    ::kill(pid_, number);
}

bool ProcessHandle::wait_gone(milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (fd_) {
      pollfd p{fd_.get(), POLLIN, 0};
      if (::poll(&p, 1, left > 0 ? static_cast<int>(left) : 0) > 0) return true;
    } else {
      const char state = *after_name(read_proc(AT_FDCWD, proc(pid_, "/stat").c_str()));
      if (state == '\0' || state == 'Z') return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (left <= 0) return false;
  }
}

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> list = {root};
  if (kernel_lists_children()) {
    for (std::size_t i = 0; i < list.size(); ++i) append_children(list[i], list);
  } else {
    const auto children = all_by_parent();
    for (std::size_t i = 0; i < list.size(); ++i)
      for (auto [at, end] = children.equal_range(list[i]); at != end; ++at)
        list.push_back(at->second);
  }
  list.erase(list.begin());
  return list;
}

bool is_stopped(pid_t pid) {
  const std::string folder = proc(pid, "/task");
  const UniqueFd tasks(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tasks) return true;
  for (const pid_t tid : numbered_entries(folder)) {
    const std::string stat = read_proc(tasks.get(), (std::to_string(tid) + "/stat").c_str());
    if (std::strchr("TtZX", *after_name(stat)) == nullptr)
      return false;  // "" is gone: '\0' matches
  }
  return true;
}

Usage usage_of(pid_t pid, std::int64_t memory_limit_bytes) {
  const std::string status = read_proc(AT_FDCWD, proc(pid, "/status").c_str());
  constexpr std::int64_t kKiB = 1024;
  Usage u;
  u.tasks = static_cast<int>(field(status, "\nThreads:"));
  const std::int64_t private_bytes =
      (field(status, "\nRssAnon:") + field(status, "\nVmSwap:")) * kKiB;
  std::int64_t shared_bytes = field(status, "\nRssShmem:") * kKiB;
  // Arenas are resident shared memory too. To tell them apart costs more than a glance: only when
  // it could matter.
  if (shared_bytes > 0 && private_bytes + shared_bytes > memory_limit_bytes) {
    const auto arenas = mapped_bytes(pid, own_memory_files());
    if (!arenas) return {};
    shared_bytes = std::max<std::int64_t>(0, shared_bytes - *arenas);
  }
  u.memory_bytes = private_bytes + shared_bytes;
  return u;
}

int tasks_of_user(uid_t uid) {
  int tasks = 0;
  for (const pid_t pid : numbered_entries("/proc")) {
    const std::string status = read_proc(AT_FDCWD, proc(pid, "/status").c_str());
    if (field(status, "\nUid:") == static_cast<std::int64_t>(uid))
      tasks += static_cast<int>(field(status, "\nThreads:"));
  }
  return tasks;
}

}  // namespace assay::sandbox
