// SPDX-License-Identifier: Apache-2.0
// The first process of a sandbox: starts the program as its child, reaps whatever is orphaned,
// tells the judge how the program ended, and ends everything when the judge is gone. It holds
// nothing the program could want and reads nothing the program wrote.
//
// It reports to the judge over a SOCK_SEQPACKET socket, one message each; the judge learns the pids
// from the credentials that the kernel attaches:
//   "I"            from the first process, before it starts the program
//   "S"            from the program's process: locked down, about to run
//   "E" + text     the sandbox could not be set up: which step, and why
//   "X" + int      from the first process: the wait status of the program
#pragma once

#include <functional>
#include <string>

namespace assay::runner {

/// Where the judge puts the report socket.
inline constexpr int kReportFd = 4;

/// Forks. The child calls `enter` (its text, if any, is reported as an error), reports "S", then
/// calls `program` and exits with what that returns. The parent supervises; its exit code is
/// returned.
int supervise(int report, const std::function<std::string()>& enter,
              const std::function<int()>& program);

/// Reports "E" and returns 3.
int report_error(int report, const std::string& text);

}  // namespace assay::runner
