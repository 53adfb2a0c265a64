// SPDX-License-Identifier: Apache-2.0
#include "runner/enclose.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "runner/supervise.h"

namespace assay::runner {
namespace {

namespace fs = std::filesystem;

struct SetupFailed : std::runtime_error {
  explicit SetupFailed(const std::string& step, int error = errno)
      : std::runtime_error(step + ": " + std::strerror(error)) {}
};

void require(bool done, const std::string& step) {
  if (!done) throw SetupFailed(step);
}

// ---- user namespace ---------------------------------------------------------------------------

void write_line(const char* path, const std::string& line) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  require(fd >= 0, path);
  const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  ::close(fd);
  if (!written) throw SetupFailed(path, error);
}

void map_own_user(uid_t uid, gid_t gid) {
  const std::string u = std::to_string(uid), g = std::to_string(gid);
  write_line("/proc/self/setgroups", "deny");
  write_line("/proc/self/uid_map", u + " " + u + " 1");
  write_line("/proc/self/gid_map", g + " " + g + " 1");
}

void unshare_all(bool user) {
  const uid_t uid = ::getuid();
  const gid_t gid = ::getgid();
  if (user) {
    require(::unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER)");
    map_own_user(uid, gid);
  }
  require(::unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == 0,
          "unshare of mount, pid, net, ipc and uts namespaces");
}

// ---- mounts -----------------------------------------------------------------------------------

// While the new root is being filled: where the old one and the new one are.
constexpr const char* kOld = "/oldroot";
constexpr const char* kNew = "/newroot";

void mount_at(const char* source, const std::string& target, const char* type, unsigned long flags,
              const std::string& data, const std::string& step) {
  require(::mount(source, target.c_str(), type, flags, data.c_str()) == 0, step);
}

/// A bind mount and everything mounted below it, at once.
void set_attributes(const std::string& path, bool recursive, std::uint64_t attributes) {
  mount_attr change{};
  change.attr_set = attributes;
  require(::syscall(SYS_mount_setattr, AT_FDCWD, path.c_str(), recursive ? AT_RECURSIVE : 0,
                    &change, sizeof change) == 0,
          "mount_setattr(" + path + ") (Linux 5.12 or newer is needed)");
}

/// From here on "/" is an empty tmpfs with the old root at kOld.
void start_new_root() {
  mount_at(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, "", "making the mounts private");
  const std::string base = "/tmp";
  mount_at("tmpfs", base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755", "mounting a tmpfs");
  require(::mkdir((base + kOld).c_str(), 0755) == 0, "mkdir oldroot");
  require(::mkdir((base + kNew).c_str(), 0755) == 0, "mkdir newroot");
  mount_at("tmpfs", base + kNew, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m",
           "mounting the new root");
  require(::syscall(SYS_pivot_root, base.c_str(), (base + kOld).c_str()) == 0, "pivot_root");
  require(::chdir("/") == 0, "chdir /");
}

void enter_new_root() {
  require(::umount2(kOld, MNT_DETACH) == 0, "detaching the old root");
  require(::chdir(kNew) == 0, "chdir into the new root");
  require(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
  require(::umount2(".", MNT_DETACH) == 0, "detaching the first tmpfs");
  require(::chdir("/") == 0, "chdir /");
}

void make_mount_point(const fs::path& target, bool folder) {
  std::error_code error;
  fs::create_directories(folder ? target : target.parent_path(), error);
  if (!error && !folder) {
    const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    if (fd < 0) error = {errno, std::generic_category()};
    if (fd >= 0) ::close(fd);
  }
  if (error) throw SetupFailed("making the mount point " + target.string(), error.value());
}

struct Mounter {
  std::string perms = "0755", size;  ///< of the next tmpfs

  static std::string inside(const std::string& path) { return kNew + path; }

  static void bind(const std::string& source, const std::string& target, std::uint64_t attributes) {
    const std::string from = kOld + source, to = inside(target);
    make_mount_point(to, fs::is_directory(from));
    mount_at(from.c_str(), to, nullptr, MS_BIND | MS_REC, "", "binding " + source);
    set_attributes(to, true, attributes);
  }

  void tmpfs(const std::string& target) {
    make_mount_point(inside(target), true);
    mount_at("tmpfs", inside(target), "tmpfs", MS_NOSUID | MS_NODEV,
             "mode=" + perms + (size.empty() ? "" : ",size=" + size), "mounting " + target);
    perms = "0755";
    size.clear();
  }

  static void proc(const std::string& target) {
    make_mount_point(inside(target), true);
    mount_at("proc", inside(target), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "",
             "mounting /proc (containers often mask it)");
  }

  void dev(const std::string& target) {
    size = "1m";
    tmpfs(target);
    for (const char* node : {"null", "zero", "full", "random", "urandom"})
      bind(std::string("/dev/") + node, target + "/" + node, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    symlink("/proc/self/fd", target + "/fd");
    for (const char* std : {"0/stdin", "1/stdout", "2/stderr"})
      symlink(std::string("/proc/self/fd/") + std[0], target + (std + 1));
  }

  static void symlink(const std::string& target, const std::string& path) {
    require(::symlink(target.c_str(), inside(path).c_str()) == 0, "symlink " + path);
  }
};

// ---- the command line -------------------------------------------------------------------------

/// One pass over the arguments; the mounts only when `mounts`.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& a) : a_(a) {}

  bool user = false;
  std::string folder = "/";
  std::vector<std::string> command;

  void read(bool mounts) {
    Mounter m;
    for (at_ = 0; at_ < a_.size();) {
      const std::string option = next();
      if (option == "--") {
        command.assign(a_.begin() + static_cast<std::ptrdiff_t>(at_), a_.end());
        break;
      } else if (option == "--unshare-user") {
        user = true;
      } else if (option == "--chdir") {
        folder = next();
      } else if (!mount_option(option, mounts, m)) {
        throw SetupFailed("assay-runner enclose " + option, EINVAL);
      }
    }
    if (command.empty()) throw SetupFailed("assay-runner enclose without a command", EINVAL);
  }

 private:
  std::string next() { return at_ < a_.size() ? a_[at_++] : ""; }

  bool mount_option(const std::string& option, bool mounts, Mounter& m) {
    const std::string first = next();
    if (option == "--perms") return m.perms = first, true;
    if (option == "--size") return m.size = first, true;
    if (option == "--tmpfs") return mounts ? m.tmpfs(first) : void(), true;
    if (option == "--dir") return mounts ? make_mount_point(m.inside(first), true) : void(), true;
    if (option == "--proc") return mounts ? m.proc(first) : void(), true;
    if (option == "--dev") return mounts ? m.dev(first) : void(), true;
    if (option == "--remount-ro")
      return mounts ? set_attributes(m.inside(first), false, MOUNT_ATTR_RDONLY) : void(), true;
    const std::string second = next();
    constexpr std::uint64_t kBound = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (option == "--ro-bind")
      return mounts ? m.bind(first, second, kBound | MOUNT_ATTR_RDONLY) : void(), true;
    if (option == "--bind") return mounts ? m.bind(first, second, kBound) : void(), true;
    if (option == "--dev-bind")
      return mounts ? m.bind(first, second, MOUNT_ATTR_NOSUID) : void(), true;
    if (option == "--symlink") return mounts ? m.symlink(first, second) : void(), true;
    return false;
  }

  const std::vector<std::string>& a_;
  std::size_t at_ = 0;
};

[[noreturn]] void run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw SetupFailed("execv " + command[0]);
}

/// In the first process of the pid namespace.
void become_first(Reader& reader) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  start_new_root();
  reader.read(true);
  enter_new_root();
  require(::chdir(reader.folder.c_str()) == 0, "chdir " + reader.folder);
  run(reader.command);
}

}  // namespace

int enclose(const std::vector<std::string>& arguments, int report) {
  try {
    Reader reader(arguments);
    reader.read(false);
    unshare_all(reader.user);
    const pid_t first = ::fork();
    require(first >= 0, "fork");
    if (first == 0) become_first(reader);
    ::close_range(0, ~0U, 0);  // what the judge waits for to close is the first process's alone
    int status = 0;
    while (::waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } catch (const std::exception& e) {
    return report_error(report, e.what());
  }
}

}  // namespace assay::runner
