// SPDX-License-Identifier: Apache-2.0
#include "judge/build/compiler.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>

#include "judge/base/fault.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path p = fs::path(folder) / program;
    if (::access(p.c_str(), X_OK) == 0) return fs::canonical(p);
  }
  return std::nullopt;
}

fs::path find_gxx() {
  // The judge's own compiler, not the submission's: nothing hostile is run here.
  if (const auto p = in_path("g++")) return *p;
  throw JudgeError("g++ not found: install g++");
}

fs::path find_nvcc() {
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* v = std::getenv(variable)) {
      const fs::path p = fs::path(v) / "bin" / "nvcc";
      if (::access(p.c_str(), X_OK) == 0) return fs::canonical(p);
    }
  if (const auto p = in_path("nvcc")) return *p;
  const fs::path usual = "/usr/local/cuda/bin/nvcc";
  if (::access(usual.c_str(), X_OK) == 0) return fs::canonical(usual);
  throw JudgeError("nvcc not found: install the CUDA toolkit or set CUDA_HOME");
}

/// The line of `path --version` that says which one it is: the first, or nvcc's with "release".
std::string version_of(const fs::path& path, bool nvcc) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen(("'" + path.string() + "' --version 2>&1").c_str(), "r"), ::pclose);
  if (!pipe) throw JudgeError("cannot run {}", path.string());
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::string text = line.data();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (!nvcc || text.find("release") != std::string::npos) return text;
  }
  throw JudgeError("{} --version says nothing: reinstall it", path.string());
}

}  // namespace

Compiler find_compiler(Language language, int arch) {
  if (language == Language::kCpp) {
    static const Compiler found = [] {
      const fs::path p = find_gxx();
      return Compiler{p,
                      version_of(p, false),
                      {"-std=c++20", "-O3", "-march=native", "-fPIC", "-shared", "-pthread",
                       "-fdiagnostics-color=never"}};
    }();
    return found;
  }
  static const Compiler found = [] {
    const fs::path p = find_nvcc();
    return Compiler{p, version_of(p, true), {}};
  }();
  Compiler c = found;
  const std::string sm =
      fmt::format("{}{}", arch == 0 ? 90 : arch, arch == 0 || arch >= 90 ? "a" : "");
  const fs::path lib = c.path.parent_path().parent_path() / "lib64";
  c.flags = {"-std=c++20",
             "-O3",
             "-gencode",
             fmt::format("arch=compute_{0},code=sm_{0}", sm),
             "-lineinfo",
             "-Xcompiler",
             "-fPIC",
             "-shared",
             "-L" + (lib / "stubs").string(),
             "-lcuda"};
  return c;
}

}  // namespace assay
