// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "judge/submission/submission.h"

namespace assay {

struct Compiler {
  std::filesystem::path path;
  std::string version;             ///< first telling line of --version
  std::vector<std::string> flags;  ///< everything but sources, includes and the output
};

/// The compiler for submissions in `language`; `arch` as in BuildOptions. JudgeError when it is not
/// installed. Found once per process.
Compiler find_compiler(Language language, int arch);

}  // namespace assay
