// SPDX-License-Identifier: Apache-2.0
// Compiles a submission in the sandbox. Results are cached by content: sources, ABI header,
// compiler version, flags.
#pragma once

#include <filesystem>
#include <string>

#include "judge/sandbox/sandbox.h"
#include "judge/submission/submission.h"

namespace assay {

struct BuildOptions {
  SandboxKind sandbox = SandboxKind::kAuto;
  double deadline_s = 120;
  int arch = 0;  ///< cuda: compute capability * 10 of the device (90 -> sm_90a); 0: the default, 90
};

struct Artifact {
  std::filesystem::path shared_object;  ///< in the cache
  std::string sha256;                   ///< of the shared object
  std::string compiler;                 ///< first line of its --version
  std::string command;                  ///< as run, paths as inside the sandbox
  std::string log;                      ///< warnings
  bool cached = false;
  double build_s = 0;
};

/// SubmissionFault(compile_error) with the compiler's own lines (source names as the user knows
/// them), or (time_limit / memory_limit / output_limit) by the sandbox's word; JudgeError when
/// there is no compiler ("nvcc not found: install the CUDA toolkit or set CUDA_HOME").
Artifact build(const Submission&, const BuildOptions&);

}  // namespace assay
