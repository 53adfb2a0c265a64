// SPDX-License-Identifier: Apache-2.0
// What is executed to get a sandboxed program, and what it sees.
#pragma once

#include <string>
#include <vector>

#include "judge/sandbox/sandbox.h"

namespace assay::sandbox {

/// The program's own command (runner/main.cc: "serve" or "exec") with its lockdown flags, wrapped
/// in the one that makes the namespaces. `kind` is not kAuto. JudgeError if bwrap is not installed.
std::vector<std::string> command_line(SandboxKind kind, const SandboxPolicy& policy,
                                      const std::vector<std::string>& argv);

/// "NAME=value" of everything the program gets; nothing else of the judge's environment.
std::vector<std::string> environment(const SandboxPolicy& policy);

/// Path of bwrap; empty if it is not in $PATH.
std::filesystem::path find_bubblewrap();

}  // namespace assay::sandbox
