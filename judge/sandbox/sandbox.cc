// SPDX-License-Identifier: Apache-2.0
#include "judge/sandbox/sandbox.h"

#include <string.h>

#include <mutex>

#include "judge/base/fault.h"
#include "judge/base/text.h"
#include "judge/sandbox/command.h"
#include "judge/sandbox/running.h"
#include "judge/sandbox/trial.h"

namespace assay {
namespace {

constexpr SandboxKind kKinds[] = {SandboxKind::kAuto, SandboxKind::kBubblewrap,
                                  SandboxKind::kNamespaces, SandboxKind::kNone};

SandboxKind find_one_that_works() {
  std::string why;
  for (const SandboxKind kind : {SandboxKind::kBubblewrap, SandboxKind::kNamespaces}) {
    const std::string error = sandbox::try_out(kind);
    if (error.empty()) return kind;
    why += error + "; ";
  }
  throw JudgeError("no sandbox works here: {}{}", why, sandbox::kRemedy);
}

}  // namespace

const char* name(SandboxKind kind) {
  switch (kind) {
    case SandboxKind::kAuto:
      return "auto";
    case SandboxKind::kBubblewrap:
      return "bwrap";
    case SandboxKind::kNamespaces:
      return "namespaces";
    case SandboxKind::kNone:
      return "none";
  }
  return "?";
}

SandboxKind sandbox_kind_from_name(const std::string& word) {
  std::vector<std::string> names;
  for (const SandboxKind kind : kKinds) {
    if (word == name(kind)) return kind;
    names.push_back(name(kind));
  }
  throw UsageError("unknown sandbox '{}'{}; known: {}", word, suggestion(word, names), join(names));
}

std::string ExitStatus::describe() const {
  std::string text;
  if (exited) {
    text = fmt::format("exited with code {}", code);
  } else {
    const char* abbreviation = ::sigabbrev_np(code);
    text = fmt::format("killed by signal {}{}", code,
                       abbreviation ? fmt::format(" (SIG{})", abbreviation) : "");
  }
  if (forbidden_call) text += ", a forbidden system call";
  if (memory_exceeded) text += ", used more memory than allowed";
  if (tasks_exceeded) text += ", started more threads or processes than allowed";
  if (output_exceeded) text += ", printed more than allowed";
  if (deadline_passed) text += ", ran past its deadline";
  return text;
}

SandboxKind resolve_sandbox(SandboxKind kind) {
  if (kind != SandboxKind::kAuto) return kind;
  static const SandboxKind found = find_one_that_works();
  return found;
}

std::unique_ptr<Sandbox> start_sandboxed(SandboxKind kind, const SandboxPolicy& policy,
                                         const std::vector<std::string>& argv, int passed_fd) {
  const SandboxKind resolved = resolve_sandbox(kind);
  try {
    return std::make_unique<sandbox::Running>(resolved, policy, argv, passed_fd);
  } catch (const JudgeError& e) {
    throw JudgeError("cannot start {} in the sandbox ({}): {}", argv.empty() ? "nothing" : argv[0],
                     name(resolved), e.what());
  }
}

}  // namespace assay
