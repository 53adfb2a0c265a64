// SPDX-License-Identifier: Apache-2.0
// What somebody handed in: a folder or a single file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay {

enum class Language { kCpp, kCuda };
const char* name(Language);

struct SourceFile {
  std::string path;  ///< relative, '/'-separated, no "..", sorted
  std::string bytes;
};

struct Submission {
  std::string label;  ///< what the user typed, shortened for display
  Language language = Language::kCpp;
  std::vector<SourceFile> files;
  std::string sha256;  ///< over sorted names, lengths and bytes
};

/// Reads .cpp/.cc/.cxx, .cu, .cuh, .h, .hpp files of a folder (recursively; hidden entries,
/// symbolic links and other files are left out) or one file. UsageError: nothing there, no source,
/// both cuda and cpp translation units for a cpu grade, more than 256 files or 16 MiB, unreadable
/// file. A folder holding kernel.cpp and kernel.cu both (a submission for each device) is read for
/// `language`.
Submission read_submission(const std::filesystem::path&, Language language);
/// The same from stored files (replay).
Submission make_submission(std::string label, Language, std::vector<SourceFile>);

}  // namespace assay
