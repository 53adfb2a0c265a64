// SPDX-License-Identifier: Apache-2.0
// The shipped submissions: kernels/<problem>/<name>/, graded like anybody's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "judge/submission/submission.h"

namespace assay {

struct Shipped {
  std::string problem;
  std::string name;
  std::filesystem::path folder;
};

/// Every shipped submission written for `language`, by problem, then name.
std::vector<Shipped> shipped_submissions(Language language);

}  // namespace assay
