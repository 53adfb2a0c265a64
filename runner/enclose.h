// SPDX-License-Identifier: Apache-2.0
// The namespaces by direct system calls, for machines without bubblewrap.
#pragma once

#include <string>
#include <vector>

namespace assay::runner {

/// Runs a command as the first process of new mount, pid, net, ipc and uts namespaces (and of a
/// user namespace of its own with --unshare-user), then waits for it. `arguments` are those of
/// bubblewrap, of which it knows as many as the judge uses:
///   --unshare-user, --ro-bind SRC DEST, --bind SRC DEST, --dev-bind SRC DEST, --symlink TARGET
///   DEST,
///   --perms OCTAL, --size BYTES, --tmpfs DEST, --dir DEST, --proc DEST, --dev DEST,
///   --remount-ro DEST, --chdir DIR, -- COMMAND...
/// Failures are reported to `report` as in supervise.h. Returns the exit code.
int enclose(const std::vector<std::string>& arguments, int report);

}  // namespace assay::runner
