// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/command.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "judge/base/fault.h"
#include "judge/base/paths.h"
#include "judge/sandbox/processes.h"
#include "judge/sandbox/spawn.h"

namespace assay::sandbox {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;
using Program = SandboxPolicy::Program;

constexpr const char* kRunnerInside = "/assay/runner";
constexpr unsigned kNobody = 65534;

void append(Words& to, const Words& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Root in a container may lack what it takes; an own user namespace may give it.
bool may_administer() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// ---- the innermost command --------------------------------------------------------------------

Words lockdown_flags(SandboxKind kind, const SandboxPolicy& p) {
  Words flags = {"--report=" + std::to_string(kReport),
                 "--file-bytes=" + std::to_string(p.limits.file_bytes)};
  // A backstop against bombs faster than the watchdog, who counts exactly. Without a user namespace
  // the limit counts all that the user runs.
  const bool own_user = kind == SandboxKind::kNone && ::geteuid() != 0;
  const int others = own_user ? tasks_of_user(::geteuid()) : 0;
  flags.push_back("--threads=" + std::to_string(2 * p.limits.threads + 64 + others));
  if (p.gpu) flags.push_back("--gpu");
  if (::geteuid() == 0) flags.push_back("--drop-uid=" + std::to_string(kNobody));
  return flags;
}

/// argv as asked for, with the runner in front of a compiler, and the flags in their place.
Words inner_command(SandboxKind kind, const SandboxPolicy& p, const Words& argv) {
  const Words flags = lockdown_flags(kind, p);
  if (p.program == Program::kRunner) {
    Words command = argv;
    command.insert(command.begin() + std::min<std::ptrdiff_t>(2, std::ssize(command)),
                   flags.begin(), flags.end());
    return command;
  }
  Words command = {kind == SandboxKind::kNone ? runner_path().string() : kRunnerInside, "exec"};
  append(command, flags);
  command.push_back("--");
  append(command, argv);
  return command;
}

// ---- the view of the file system, in bubblewrap's words ---------------------------------------

/// bubblewrap makes what lies above a mount point for root only.
void folders_above(Words& w, const fs::path& inside) {
  fs::path folder = "/";
  for (const fs::path& part : inside.relative_path().parent_path()) {
    folder /= part;
    append(w, {"--dir", folder.string()});
  }
}

void show(Words& w, const char* how, const fs::path& host, const fs::path& inside) {
  std::error_code error;
  const fs::path real = fs::canonical(host, error);
  if (error) throw JudgeError("cannot show {}: {}", host.string(), error.message());
  folders_above(w, inside);
  append(w, {how, real.string(), inside.string()});
}

void system_folders(Words& w) {
  show(w, "--ro-bind", "/usr", "/usr");
  for (const char* folder : {"/bin", "/sbin", "/lib", "/lib32", "/libx32", "/lib64"}) {
    std::error_code none;
    if (fs::is_symlink(folder, none))
      append(w, {"--symlink", fs::read_symlink(folder).string(), folder});
    else if (fs::is_directory(folder, none))
      show(w, "--ro-bind", folder, folder);
  }
  for (const char* path :
       {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"})
    if (fs::exists(path)) show(w, "--ro-bind", path, path);
}

/// The installation around a program outside /usr, such as a CUDA toolkit in /opt; never a whole
/// home.
void toolchain(Words& w, const fs::path& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (error || is_below(real, "/usr") || is_below(real, "/bin")) return;
  const fs::path root = real.parent_path().parent_path();
  const char* home = std::getenv("HOME");
  if (!root.has_relative_path() || (home != nullptr && is_below(fs::path(home), root))) return;
  show(w, "--ro-bind", root, root);
}

void gpu_nodes(Words& w) {
  show(w, "--ro-bind", "/sys", "/sys");
  for (const auto& entry : fs::directory_iterator("/dev")) {
    const std::string node = entry.path().filename();
    const bool numbered = node.rfind("nvidia", 0) == 0 && node.size() > 6 &&
                          node.find_first_not_of("0123456789", 6) == std::string::npos;
    if (numbered || node == "nvidiactl" || node == "nvidia-uvm" || node == "nvidia-uvm-tools")
      append(w, {"--dev-bind", entry.path().string(), entry.path().string()});
  }
}

Words file_system(const SandboxPolicy& p, const Words& argv) {
  Words w;
  system_folders(w);
  if (p.program == Program::kCompiler && !argv.empty()) toolchain(w, argv[0]);
  const std::string size = std::to_string(p.limits.file_bytes);
  append(w, {"--proc", "/proc", "--dev", "/dev"});
  for (const char* folder : {"/tmp", "/dev/shm"})
    append(w, {"--perms", "1777", "--size", size, "--tmpfs", folder});
  if (p.gpu) gpu_nodes(w);
  bool has_runner = false;
  for (const Bind& b : p.binds) {
    show(w, b.writable ? "--bind" : "--ro-bind", b.host, b.inside);
    has_runner = has_runner || b.inside == kRunnerInside;
  }
  if (!has_runner) show(w, "--ro-bind", runner_path(), kRunnerInside);
  // The scaffolding between the mounts is memory, too.
  append(w, {"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"});
  return w;
}

Words bubblewrap(const SandboxPolicy& p, const Words& argv) {
  const fs::path bwrap = find_bubblewrap();
  if (bwrap.empty()) throw JudgeError("bwrap not found: install bubblewrap");
  Words w = {bwrap.string(),  "--unshare-pid",        "--unshare-net", "--unshare-ipc",
             "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1",    "--die-with-parent"};
  if (!may_administer()) w.push_back("--unshare-user");
  // What becoming nobody takes; given up with everything else in the lockdown.
  if (::geteuid() == 0)
    append(w, {"--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"});
  append(w, file_system(p, argv));
  return w;
}

Words namespaces(const SandboxPolicy& p, const Words& argv) {
  Words w = {runner_path().string(), "enclose"};
  if (!may_administer()) w.push_back("--unshare-user");
  append(w, file_system(p, argv));
  return w;
}

}  // namespace

fs::path find_bubblewrap() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path p = fs::path(folder) / "bwrap"; ::access(p.c_str(), X_OK) == 0) return p;
  return {};
}

Words command_line(SandboxKind kind, const SandboxPolicy& p, const Words& argv) {
  const Words inner = inner_command(kind, p, argv);
  if (kind == SandboxKind::kNone) return inner;
  Words w = kind == SandboxKind::kBubblewrap ? bubblewrap(p, argv) : namespaces(p, argv);
  w.push_back("--");
  append(w, inner);
  return w;
}

Words environment(const SandboxPolicy& p) {
  Words e = {"PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
             "LANG=C.UTF-8",
             // In a sanitized runner: a leak check needs ptrace, which kills; a crash must look
             // like one from outside.
             "ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0"};
  if (p.gpu) e.push_back("CUDA_MPS_PIPE_DIRECTORY=/nonexistent");  // no timing under MPS holds
  for (const char* name : {"LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})
    if (const char* value = std::getenv(name)) e.push_back(std::string(name) + "=" + value);
  return e;
}

}  // namespace assay::sandbox
