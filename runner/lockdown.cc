// SPDX-License-Identifier: Apache-2.0
#include "runner/lockdown.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <vector>

#include "runner/syscalls.h"

namespace assay::runner {
namespace {

constexpr rlim_t kOpenFiles = 1024;

std::string failed(const std::string& step, int error = errno) {
  return step + ": " + std::strerror(error);
}

// ---- limits and identity ----------------------------------------------------------------------

/// Lowers both limits; a hard limit that is lower already stays.
std::string limit(int resource, const char* name, rlim_t value) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) return failed(name);
  const rlim_t most = std::min(value, now.rlim_max);
  const rlimit lowered{most, most};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &lowered) != 0) return failed(name);
  return "";
}

std::string set_limits(const Lockdown& l) {
  std::string error = limit(RLIMIT_CORE, "RLIMIT_CORE", 0);
  if (error.empty()) error = limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", kOpenFiles);
  if (error.empty()) error = limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", static_cast<rlim_t>(l.file_bytes));
  if (error.empty() && l.threads > 0)
    error = limit(RLIMIT_NPROC, "RLIMIT_NPROC", static_cast<rlim_t>(l.threads));
  // The CUDA driver reserves address space by the terabyte.
  if (error.empty() && l.address_bytes > 0 && !l.gpu)
    error = limit(RLIMIT_AS, "RLIMIT_AS", static_cast<rlim_t>(l.address_bytes));
  return error;
}

std::string become(uid_t id) {
  if (id == 0 || ::geteuid() != 0) return "";
  // Inside a user namespace with a single user (EINVAL), or one that may not change its groups
  // (EPERM), root is nobody outside, and loses its capabilities below.
  if (::setgroups(0, nullptr) != 0 && errno != EPERM) return failed("setgroups");
  if (::setresgid(id, id, id) != 0 && errno != EINVAL) return failed("setresgid");
  if (::setresuid(id, id, id) != 0 && errno != EINVAL) return failed("setresuid");
  return "";
}

std::string drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return failed("capset");
  return "";
}

// ---- the filter -------------------------------------------------------------------------------

constexpr std::uint64_t kLow = 0xffffffff;  // the kernel looks at these bits of an int only
constexpr std::uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

/// Argument `index` has exactly the bits `value` under `mask`.
scmp_arg_cmp bits(unsigned index, std::uint64_t mask, std::uint64_t value) {
  return {index, SCMP_CMP_MASKED_EQ, mask, value};
}
scmp_arg_cmp equals(unsigned index, std::uint64_t value) {
  return bits(index, kLow, value & kLow);
}

class Filter {
 public:
  Filter() : context_(::seccomp_init(SCMP_ACT_KILL_PROCESS)) {}
  ~Filter() {
    if (context_ != nullptr) ::seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <class Names>
  void rules(std::uint32_t action, const Names& names) {
    for (const char* name : names) rule(action, name);
  }
  void rule(std::uint32_t action, const char* name, const std::vector<scmp_arg_cmp>& when = {}) {
    if (error_ != 0) return;
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number < 0) return;  // unknown, or of other architectures
    error_ = ::seccomp_rule_add_array(context_, action, number, static_cast<unsigned>(when.size()),
                                      when.data());
    if (error_ != 0) where_ = name;
  }
  std::string load() {
    if (context_ == nullptr) return "seccomp: out of memory";
    if (error_ != 0) return failed("seccomp, " + where_, -error_);
    ::seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    // Without this, older kernels slow every store and load of a filtered process down, and the
    // judge would measure that.
    ::seccomp_attr_set(context_, SCMP_FLTATR_CTL_SSB, 1);
    ::seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (const int e = ::seccomp_load(context_); e != 0)
      return failed("seccomp (is CONFIG_SECCOMP_FILTER set?)", -e);
    return "";
  }

 private:
  scmp_filter_ctx context_;
  int error_ = 0;
  std::string where_;
};

/// Signals to itself, except those that would undo the judge's SIGSTOP or feign it.
void allow_signals(Filter& f) {
  const auto own = static_cast<std::uint64_t>(::getpid());
  struct Range {
    std::uint64_t mask, value;
  };
  // 0-15, 16-17, 20-23, 24-31, 32-63, 64: all but SIGCONT (18) and SIGSTOP (19).
  static_assert(SIGCONT == 18 && SIGSTOP == 19);
  constexpr Range kSignals[] = {{0xfffffff0, 0},  {0xfffffffe, 16}, {0xfffffffc, 20},
                                {0xfffffff8, 24}, {0xffffffe0, 32}, {kLow, 64}};
  for (const Range& s : kSignals) {
    f.rule(SCMP_ACT_ALLOW, "kill", {equals(0, own), bits(1, s.mask, s.value)});
    f.rule(SCMP_ACT_ALLOW, "tgkill", {equals(0, own), bits(2, s.mask, s.value)});
  }
}

/// All of fcntl but F_SETSIG and F_SETOWN: a stopped process could have SIGCONT sent to itself.
void allow_fcntl(Filter& f) {
  constexpr int kCommands[] = {
      F_DUPFD,       F_DUPFD_CLOEXEC, F_GETFD,           F_SETFD,     F_GETFL,      F_SETFL,
      F_GETLK,       F_SETLK,         F_SETLKW,          F_OFD_GETLK, F_OFD_SETLK,  F_OFD_SETLKW,
      F_GETOWN,      F_GETSIG,        F_ADD_SEALS,       F_GET_SEALS, F_SETPIPE_SZ, F_GETPIPE_SZ,
      F_GET_RW_HINT, F_SET_RW_HINT,   F_GET_FILE_RW_HINT};
  for (const char* name : {"fcntl", "fcntl64"})
    for (const int command : kCommands)
      f.rule(SCMP_ACT_ALLOW, name, {equals(1, static_cast<std::uint64_t>(command))});
}

void runner_rules(Filter& f) {
  f.rules(SCMP_ACT_ERRNO(EPERM), kRefused);
  f.rule(SCMP_ACT_ALLOW, "clone", {bits(0, CLONE_THREAD | kNewNamespaces, CLONE_THREAD)});
  for (const std::uint64_t pid : {std::uint64_t{0}, static_cast<std::uint64_t>(::getpid())})
    f.rule(SCMP_ACT_ALLOW, "prlimit64", {equals(0, pid)});
  allow_signals(f);
  allow_fcntl(f);
}

/// Pages of such a file are in nobody's resident memory until they are mapped: an honest program on
/// the cpu does without, the CUDA driver does not.
void memfd_rule(Filter& f, bool gpu) {
  f.rule(gpu ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(ENOSYS), "memfd_create");
}

/// The driver looks for MPS and listens for debuggers on local sockets, and does not start without
/// (error 304). Those are named per network namespace or by files, and there are neither inside.
void gpu_rules(Filter& f) {
  f.rule(SCMP_ACT_ALLOW, "socket", {equals(0, AF_UNIX)});
  for (const char* name : {"connect", "bind", "listen", "accept", "accept4"})
    f.rule(SCMP_ACT_ALLOW, name);
}

void compiler_rules(Filter& f) {
  f.rules(SCMP_ACT_ALLOW, kCompilerAllowed);
  std::vector<const char*> rest;
  for (const char* name : kRefused)
    if (std::none_of(std::begin(kCompilerAllowed), std::end(kCompilerAllowed),
                     [&](const char* a) { return std::strcmp(a, name) == 0; }))
      rest.push_back(name);
  f.rules(SCMP_ACT_ERRNO(EPERM), rest);
  f.rule(SCMP_ACT_ALLOW, "clone", {bits(0, kNewNamespaces, 0)});
  // One process or its own group, never everybody: without a pid namespace that is the judge, too.
  constexpr std::uint64_t kSign = 0x80000000;
  f.rule(SCMP_ACT_ALLOW, "kill", {bits(0, kSign, 0)});
  f.rule(SCMP_ACT_ERRNO(EPERM), "kill", {bits(0, kSign, kSign)});
  f.rule(SCMP_ACT_ALLOW, "tgkill");
  // Looking a user up asks a daemon first, over a local socket.
  f.rule(SCMP_ACT_ERRNO(EPERM), "socket", {equals(0, AF_UNIX)});
}

std::string install_filter(const Lockdown& l) {
  Filter f;
  f.rules(SCMP_ACT_ALLOW, kAllowed);
  f.rules(SCMP_ACT_ERRNO(ENOSYS), kAbsent);
  if (l.compiler) {
    compiler_rules(f);
  } else {
    runner_rules(f);
    memfd_rule(f, l.gpu);
    if (l.gpu) gpu_rules(f);
  }
  return f.load();
}

}  // namespace

std::string apply(const Lockdown& l) {
  std::string error = set_limits(l);
  if (error.empty()) error = become(l.drop_uid);
  if (error.empty()) error = drop_capabilities();
  if (error.empty() && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    error = failed("PR_SET_NO_NEW_PRIVS");
  if (error.empty()) error = install_filter(l);
  return error;
}

}  // namespace assay::runner
