// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "judge/sandbox/sandbox.h"

namespace assay::sandbox {

inline constexpr const char* kRemedy =
    "install bubblewrap; allow unprivileged user namespaces (sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0); in a container, run it with --security-opt "
    "seccomp=unconfined --security-opt systempaths=unconfined; or grade with --sandbox=none, which "
    "protects the score but not the machine and marks the record";

/// Runs /bin/true that way. Empty if it ended well, else what failed.
std::string try_out(SandboxKind kind);

}  // namespace assay::sandbox
