// SPDX-License-Identifier: Apache-2.0
// The last step of the sandbox, applied by the runner binary to itself before it loads or executes
// anything hostile: resource limits, an unprivileged uid, no_new_privs, a system-call filter. It
// cannot be undone from inside.
#pragma once

#include <cstdint>
#include <string>

namespace assay::runner {

struct Lockdown {
  bool compiler = false;  ///< the filter that allows processes and execve; else neither
  bool gpu = false;       ///< allow what the CUDA driver needs
  std::int64_t file_bytes = 256 << 20;
  std::int64_t address_bytes = 0;  ///< RLIMIT_AS, a backstop; 0 = none (always none with gpu)
  int threads = 256;               ///< RLIMIT_NPROC
  unsigned drop_uid = 0;           ///< if running as uid 0: become this uid and gid; 0 = stay
};

/// Empty on success, else which step failed and why.
std::string apply(const Lockdown&);

}  // namespace assay::runner
