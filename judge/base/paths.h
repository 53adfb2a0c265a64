// SPDX-License-Identifier: Apache-2.0
// Where things are: the installation (problems, corpus, data files, runner) and the user's state.
#pragma once

#include <filesystem>
#include <string>

namespace assay {

/// Root of the checkout or installation: $ASSAY_HOME, else found from the executable's own place.
/// Holds problems/, corpus/, data/, runner/abi/. Throws JudgeError if there is none.
std::filesystem::path home_dir();
/// The runner binary, beside this executable.
std::filesystem::path runner_path();
/// Database and artefacts: $ASSAY_STATE, else $XDG_STATE_HOME/assay, else ~/.local/state/assay.
std::filesystem::path state_dir();
/// Build cache: $ASSAY_CACHE, else $XDG_CACHE_HOME/assay, else ~/.cache/assay.
std::filesystem::path cache_dir();

/// Whole file as bytes. UsageError with the path when it cannot be read.
std::string read_file(const std::filesystem::path&);
/// Writes beside, fsyncs, renames. JudgeError with the path and reason (disk full, read-only).
void write_file_atomically(const std::filesystem::path&, const std::string& bytes);

/// A fresh private directory, removed with its content by the destructor.
class TempDir {
 public:
  explicit TempDir(const std::string& prefix = "assay");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace assay
