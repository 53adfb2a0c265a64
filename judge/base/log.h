// SPDX-License-Identifier: Apache-2.0
// Progress for a person, on stderr only; stdout carries results.
#pragma once

#include <string>

namespace assay {

/// One line that replaces the previous one on a terminal; on a pipe, printed as its own line.
/// Nothing is printed when quiet (set by --json and --quiet).
void progress(const std::string& line);
void clear_progress();
void set_quiet(bool);
/// A warning that stays on the screen.
void warn(const std::string& line);

}  // namespace assay
