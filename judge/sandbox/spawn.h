// SPDX-License-Identifier: Apache-2.0
// Starting a process with exactly the descriptors it should have.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "judge/base/fd.h"

namespace assay::sandbox {

/// Descriptors inside: the caller's, and the one runner/supervise.h reports on.
inline constexpr int kPassed = 3, kReport = 4;

struct Spawned {
  pid_t pid = -1;
  UniqueFd output;  ///< reading end of its stdout and stderr, non-blocking
  UniqueFd report;  ///< our end of the report socket (runner/supervise.h)
};

/// Starts `argv` (argv[0] a path) in a session of its own with the environment `environment`;
/// stdin is empty, descriptor 3 is `passed_fd` (or nothing readable, if < 0), 4 the report socket,
/// all others are closed. JudgeError.
Spawned spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
              int passed_fd);

/// One message of the report socket and who sent it.
struct Report {
  char kind = 0;  ///< as in runner/supervise.h; 0: none yet; 'Z': nobody is left who could report
  pid_t pid = -1;
  std::string text;
};
Report receive_report(int fd);

}  // namespace assay::sandbox
