// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/trial.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "judge/base/fault.h"
#include "judge/sandbox/command.h"

namespace assay::sandbox {
namespace {

namespace fs = std::filesystem;

std::string bubblewrap_version() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen("bwrap --version 2>&1", "r"), ::pclose);
  char line[128] = "";
  if (!pipe || std::fgets(line, sizeof line, pipe.get()) == nullptr) return "bubblewrap";
  std::string text = line;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

SandboxProbe tried(const std::string& name, SandboxKind kind, const std::string& good) {
  const std::string error = try_out(kind);
  if (error.empty()) return {name, true, good, ""};
  return {name, false, error, kRemedy};
}

SandboxProbe seccomp() {
  SandboxProbe p = tried("seccomp", SandboxKind::kNone, "system-call filter loads");
  if (!p.works) p.remedy = "use a kernel with CONFIG_SECCOMP_FILTER";
  return p;
}

/// Only told, not used: memory and tasks are watched from outside.
SandboxProbe cgroup() {
  const bool v2 = fs::exists("/sys/fs/cgroup/cgroup.controllers");
  const fs::path folder = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string version = v2 ? "v2" : "v1";
  if (!fs::exists(folder)) return {"cgroup", false, "not mounted", "none needed"};
  if (::access(folder.c_str(), W_OK) != 0)
    return {"cgroup", false, version + ", not writable", "none needed"};
  return {"cgroup", true, version + ", writable", ""};
}

}  // namespace

std::string try_out(SandboxKind kind) {
  try {
    SandboxPolicy policy;
    policy.program = SandboxPolicy::Program::kCompiler;
    const auto sandbox = start_sandboxed(kind, policy, {"/bin/true"}, -1);
    const ExitStatus end = sandbox->wait(std::chrono::seconds(10));
    if (end.exited && end.code == 0) return "";
    return "/bin/true " + end.describe() + " " + sandbox->output();
  } catch (const JudgeError& e) {
    return e.what();
  }
}

}  // namespace assay::sandbox

namespace assay {

std::vector<SandboxProbe> probe_sandbox() {
  using namespace sandbox;
  return {tried("bubblewrap", SandboxKind::kBubblewrap, bubblewrap_version()),
          tried("namespaces", SandboxKind::kNamespaces, "mount, pid, net, ipc and uts"), seccomp(),
          cgroup()};
}

}  // namespace assay
