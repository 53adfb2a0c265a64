// SPDX-License-Identifier: Apache-2.0
#include "judge/base/paths.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "judge/base/fault.h"
#include "judge/base/fd.h"
#include "judge/base/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

fs::path executable() {
  std::error_code error;
  fs::path p = fs::read_symlink("/proc/self/exe", error);
  if (error) throw JudgeError("/proc is not mounted: {}", error.message());
  return p;
}

/// $`variable`, else $`xdg`/assay, else ~/`fallback`/assay.
fs::path user_dir(const char* variable, const char* xdg, const char* fallback) {
  if (const char* v = std::getenv(variable); v != nullptr && *v != '\0') return fs::absolute(v);
  if (const char* v = std::getenv(xdg); v != nullptr && *v != '\0') return fs::path(v) / "assay";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    throw UsageError("HOME is not set: set {} to a folder Assay may write to", variable);
  return fs::path(home) / fallback / "assay";
}

void write_all(int fd, const std::string& bytes, const fs::path& path) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw JudgeError("cannot write {}: {}", path.string(), std::strerror(errno));
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace

fs::path home_dir() {
  if (const char* v = std::getenv("ASSAY_HOME"); v != nullptr && *v != '\0') {
    if (fs::is_directory(fs::path(v) / "problems")) return fs::absolute(v);
    throw UsageError("ASSAY_HOME is {}, which has no problems/ folder", v);
  }
  for (fs::path p = executable().parent_path(); p.has_relative_path(); p = p.parent_path())
    if (fs::is_directory(p / "problems") && fs::is_directory(p / "runner" / "abi")) return p;
  throw JudgeError("no problems/ folder above {}: set ASSAY_HOME to the checkout",
                   executable().string());
}

fs::path runner_path() {
  fs::path p = executable().parent_path() / "assay-runner";
  if (!fs::exists(p)) throw JudgeError("{} is missing: build all of Assay", p.string());
  return p;
}

fs::path state_dir() {
  return user_dir("ASSAY_STATE", "XDG_STATE_HOME", ".local/state");
}

fs::path cache_dir() {
  return user_dir("ASSAY_CACHE", "XDG_CACHE_HOME", ".cache");
}

std::string read_file(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw UsageError("cannot read {}: {}", path.string(), std::strerror(errno));
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw UsageError("cannot read {}: {}", path.string(), std::strerror(errno));
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

void write_file_atomically(const fs::path& path, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw JudgeError("cannot create {}: {}", path.parent_path().string(), error.message());
  const fs::path beside = fmt::format("{}.{:016x}", path.string(), random_u64());
  const UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) throw JudgeError("cannot write {}: {}", path.string(), std::strerror(errno));
  try {
    write_all(fd.get(), bytes, path);
    if (::fsync(fd.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0)
      throw JudgeError("cannot write {}: {}", path.string(), std::strerror(errno));
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
}

TempDir::TempDir(const std::string& prefix) {
  std::error_code error;
  const fs::path root = fs::temp_directory_path(error);
  if (error) throw JudgeError("no folder for temporary files: {}", error.message());
  std::string pattern = (root / (prefix + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw JudgeError("cannot create a folder in {}: {}", root.string(), std::strerror(errno));
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace assay
