// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/leftovers.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "judge/base/clock.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr double kPatience_us = 3e6;

void add_processes(std::set<std::string>& out) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto name_end = text.rfind(')');  // the name may hold anything, brackets included
    if (name_end == std::string::npos) continue;
    std::istringstream rest(text.substr(name_end + 1));
    std::string state;
    long parent = 0;
    rest >> state >> parent;
    if (parent == ::getpid()) out.insert("process " + text.substr(0, name_end + 1));
  }
}

/// ccXXXXXX.s (gcc), tmpxft_* (nvcc): of a compiler at work elsewhere on this machine. Ours has a
/// temporary folder of its own.
bool is_compilers(const std::string& name) {
  return (name.size() > 9 && name.rfind("cc", 0) == 0 && name[8] == '.') ||
         name.rfind("tmpxft_", 0) == 0;
}

void add_files(const fs::path& folder, std::set<std::string>& out) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (!is_compilers(entry.path().filename())) out.insert("file " + entry.path().string());
}

/// The lines of a table of the kernel's, but for columns that change by themselves.
void add_lines(const char* table, std::size_t columns, std::set<std::string>& out) {
  std::ifstream file(table);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kept, word;
    for (std::size_t i = 0; i < columns && words >> word; ++i) kept += " " + word;
    out.insert(table + kept);
  }
}

std::set<std::string> look() {
  std::set<std::string> out;
  add_processes(out);
  add_files("/tmp", out);
  if (std::error_code error; fs::temp_directory_path(error) != "/tmp" && !error)
    add_files(fs::temp_directory_path(), out);
  add_files("/dev/shm", out);
  add_files("/dev/mqueue", out);
  for (const char* table : {"/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem"})
    add_lines(table, 2, out);  // key and number
  add_lines("/proc/self/mounts", 3, out);
  return out;
}

}  // namespace

Leftovers::Leftovers() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  known_ = look();
}

std::vector<std::string> Leftovers::still_there(const std::vector<std::string>& taken) {
  if (taken.empty()) return {};
  const std::set<std::string> now = look();
  std::vector<std::string> out;
  for (const std::string& t : taken)
    if (now.contains(t)) out.push_back(t);
  return out;
}

std::vector<std::string> Leftovers::take() {
  const double end_us = now_us() + kPatience_us;
  for (;;) {
    std::set<std::string> now = look();
    std::vector<std::string> fresh;
    std::set_difference(now.begin(), now.end(), known_.begin(), known_.end(),
                        std::back_inserter(fresh));
    if (fresh.empty() || now_us() > end_us) {
      known_ = std::move(now);
      return fresh;
    }
    sleep_us(10'000);
  }
}

}  // namespace assay
