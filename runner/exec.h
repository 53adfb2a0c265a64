// SPDX-License-Identifier: Apache-2.0
// The ways assay-runner runs a program: the request loop, or a command.
#pragma once

#include <string>
#include <vector>

#include "runner/lockdown.h"

namespace assay::runner {

/// What stands between "serve" or "exec" and "--" on the command line.
struct Options {
  Lockdown lockdown;
  int report = -1;  ///< descriptor of the judge's report socket (supervise.h); -1: unsupervised
  std::vector<std::string> rest;  ///< after "--"
};

/// --gpu, --threads=N, --file-bytes=N, --address-bytes=N, --drop-uid=N, --report=FD, --.
/// std::invalid_argument with the offending word.
Options parse_options(const std::vector<std::string>& words);

/// Locks down and answers the judge on descriptor 3.
int serve_locked_down(const Options&);
/// Locks down (compiler filter) and becomes the command.
int exec_locked_down(const Options&);

}  // namespace assay::runner
