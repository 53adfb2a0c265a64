// SPDX-License-Identifier: Apache-2.0
// Runs a program where it can do no harm: no network, read-only system, private /tmp, /dev/shm and
// /proc, its own pid, ipc, uts and mount namespaces, no privileges, a system-call filter, limits on
// memory, processes, output and time, and killed as a tree.
//
// Two ways to get the namespaces: bubblewrap where it is installed, and the same by direct system
// calls where it is not. The rest (uid, rlimits, no_new_privs, seccomp) is applied by the runner
// binary's lockdown code in the child before it loads or executes anything hostile
// (runner/lockdown.h). What is not walled off: SECURITY.md.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "judge/base/fd.h"

namespace assay {

enum class SandboxKind { kAuto, kBubblewrap, kNamespaces, kNone };
/// "auto", "bwrap", "namespaces", "none"
const char* name(SandboxKind);
SandboxKind sandbox_kind_from_name(const std::string&);  ///< UsageError

struct Bind {
  std::filesystem::path host;
  std::filesystem::path inside;
  bool writable = false;
};

struct SandboxLimits {
  std::int64_t memory_bytes = std::int64_t{4} << 30;  ///< resident, private, all processes together
  int threads = 256;                                  ///< tasks, all processes together
  std::int64_t output_bytes = 1 << 20;                ///< stdout and stderr together
  std::int64_t file_bytes = std::int64_t{256} << 20;  ///< any one file; /tmp as a whole
};

struct SandboxPolicy {
  enum class Program { kRunner, kCompiler } program = Program::kRunner;
  bool gpu = false;         ///< make the NVIDIA device nodes visible
  std::vector<Bind> binds;  ///< besides the read-only system directories
  SandboxLimits limits;
};

/// Why a program ended, as the judge saw it.
struct ExitStatus {
  bool exited = false;           ///< false: killed by a signal
  int code = 0;                  ///< exit code, or the signal number
  bool memory_exceeded = false;  ///< the watchdog's own findings; they explain a SIGKILL
  bool tasks_exceeded = false;
  bool output_exceeded = false;
  bool deadline_passed = false;
  bool forbidden_call = false;   ///< died of SIGSYS
  std::string describe() const;  ///< "killed by signal 11 (SIGSEGV)", ...
};

/// A running sandbox. Destruction kills everything in it and waits until nothing is left.
class Sandbox {
 public:
  virtual ~Sandbox() = default;

  /// Stops every process in the sandbox and returns once all are stopped; thaw() lets them go on.
  virtual void freeze() = 0;
  virtual void thaw() = 0;
  /// Call regularly while waiting: enforces memory, tasks and output. Kills on excess. False once
  /// the program has ended.
  virtual bool poll() = 0;
  /// Kills the tree (if alive), reaps it and says how it ended.
  virtual ExitStatus finish() = 0;
  /// Waits for the program to end by itself, polling; kills at the deadline.
  virtual ExitStatus wait(std::chrono::milliseconds deadline) = 0;
  /// stdout and stderr so far, at most limits.output_bytes.
  virtual const std::string& output() const = 0;
};

/// Starts `argv` (argv[0] is a path inside the sandbox). `passed_fd` (if >= 0) is descriptor 3
/// inside. JudgeError if the sandbox itself cannot be set up, with the step that failed and what to
/// do. With kAuto: bwrap, then namespaces; if neither works, JudgeError that names --sandbox=none.
std::unique_ptr<Sandbox> start_sandboxed(SandboxKind kind, const SandboxPolicy& policy,
                                         const std::vector<std::string>& argv, int passed_fd);

/// What kAuto resolves to on this machine, found by doing (cached).
SandboxKind resolve_sandbox(SandboxKind);

/// For `assay doctor`: one probe per mechanism.
struct SandboxProbe {
  std::string name;  ///< "bubblewrap", "namespaces", "seccomp", "cgroup"
  bool works = false;
  std::string detail;  ///< version, or what failed
  std::string remedy;  ///< what to do about it; empty when it works
};
std::vector<SandboxProbe> probe_sandbox();

}  // namespace assay
