// SPDX-License-Identifier: Apache-2.0
#include "judge/submission/submission.h"

#include <algorithm>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 256;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

bool one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}
bool is_unit(const fs::path& p, Language l) {
  const std::string e = p.extension();
  return l == Language::kCuda ? e == ".cu" : one_of(e, {".cpp", ".cc", ".cxx"});
}
bool is_header(const fs::path& p) {
  return one_of(p.extension(), {".h", ".hpp", ".cuh"});
}

/// Every file under `root` that may belong to a submission; hidden entries and links are left out.
std::vector<fs::path> source_files(const fs::path& root) {
  std::vector<fs::path> out;
  std::error_code error;
  fs::recursive_directory_iterator it(root, error), end;
  for (; !error && it != end; it.increment(error)) {
    const fs::path& p = it->path();
    const bool hidden = p.filename().string().front() == '.';
    if (hidden && it->is_directory()) it.disable_recursion_pending();
    if (hidden || it->is_symlink() || !it->is_regular_file()) continue;
    if (is_unit(p, Language::kCpp) || is_unit(p, Language::kCuda) || is_header(p)) out.push_back(p);
    if (out.size() > kMaxFiles)
      throw UsageError("{} holds more than {} source files", root.string(), kMaxFiles);
  }
  if (error) throw UsageError("cannot read {}: {}", root.string(), error.message());
  return out;
}

/// The last two parts of a path: what a person would call it.
std::string shorten(fs::path p) {
  p = fs::weakly_canonical(p);
  return (p.parent_path().filename() / p.filename()).generic_string();
}

}  // namespace

const char* name(Language l) {
  return l == Language::kCpp ? "cpp" : "cuda";
}

Submission make_submission(std::string label, Language language, std::vector<SourceFile> files) {
  Submission s;
  s.label = std::move(label);
  s.language = language;
  s.files = std::move(files);
  std::sort(s.files.begin(), s.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  std::string all = std::string(name(language)) + "\n";
  std::size_t bytes = 0;
  for (const SourceFile& f : s.files) {
    all += fmt::format("{}\n{}\n", f.path, f.bytes.size());
    all += f.bytes;
    bytes += f.bytes.size();
  }
  if (bytes > kMaxBytes)
    throw UsageError("{}: more than {} MiB of source", s.label, kMaxBytes >> 20);
  s.sha256 = sha256_hex(all);
  return s;
}

Submission read_submission(const fs::path& path, Language language) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw UsageError("{}: no such file or folder", path.string());
  const bool folder = fs::is_directory(status);
  const fs::path root = folder ? path : path.parent_path();
  std::vector<fs::path> paths;
  if (folder)
    paths = source_files(path);
  else if (fs::is_regular_file(status))
    paths = {path};

  std::vector<SourceFile> files;
  bool any_unit = false, other_unit = false;
  std::uintmax_t bytes = 0;
  for (const fs::path& p : paths) {
    const Language other = language == Language::kCpp ? Language::kCuda : Language::kCpp;
    other_unit = other_unit || is_unit(p, other);
    // A .cu file means nothing to a cpu grade; C++ files are welcome beside CUDA ones.
    if (language == Language::kCpp && is_unit(p, Language::kCuda)) continue;
    if (language == Language::kCuda && is_unit(p, Language::kCpp) && p.filename() == "kernel.cpp")
      continue;  // the same submission's cpu half
    any_unit = any_unit || is_unit(p, language);
    bytes += fs::file_size(p, error);
    if (bytes > kMaxBytes)
      throw UsageError("{}: more than {} MiB of source", path.string(), kMaxBytes >> 20);
    files.push_back({p.lexically_relative(root).generic_string(), read_file(p)});
  }
  if (!any_unit) {
    const char* wanted = language == Language::kCpp ? ".cpp" : ".cu";
    throw UsageError("{} holds no {} file{}", path.string(), wanted,
                     other_unit ? fmt::format(": it is written for --device {}",
                                              language == Language::kCpp ? "cuda" : "cpu")
                                : "");
  }
  return make_submission(shorten(path), language, std::move(files));
}

}  // namespace assay
