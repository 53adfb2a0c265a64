// SPDX-License-Identifier: Apache-2.0
#include "runner/exec.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "runner/serve.h"
#include "runner/supervise.h"

namespace assay::runner {
namespace {

constexpr int kSocket = 3;

std::int64_t number(const std::string& word, std::size_t from) {
  std::size_t end = 0;
  const std::int64_t n = std::stoll(word.substr(from), &end);
  if (from + end != word.size() || n < 0) throw std::invalid_argument(word);
  return n;
}

void parse_option(const std::string& word, Options& o) {
  const auto is = [&](const char* name) { return word.rfind(name, 0) == 0; };
  const std::size_t value = word.find('=') + 1;
  if (word == "--gpu") {
    o.lockdown.gpu = true;
  } else if (is("--threads=")) {
    o.lockdown.threads = static_cast<int>(number(word, value));
  } else if (is("--file-bytes=")) {
    o.lockdown.file_bytes = number(word, value);
  } else if (is("--address-bytes=")) {
    o.lockdown.address_bytes = number(word, value);
  } else if (is("--drop-uid=")) {
    o.lockdown.drop_uid = static_cast<unsigned>(number(word, value));
  } else if (is("--report=")) {
    o.report = static_cast<int>(number(word, value));
  } else {
    throw std::invalid_argument(word);
  }
}

/// When memory runs out this process goes first, not the judge. Best effort.
void volunteer_for_the_oom_killer() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, "1000", 4);
  ::close(fd);
}

std::string lock_down(const Lockdown& l) {
  volunteer_for_the_oom_killer();
  // A judge that is not root must be able to look at its own user's process.
  if (l.drop_uid == 0) ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  return apply(l);
}

int run(const Options& o, const std::function<std::string()>& enter,
        const std::function<int()>& program) {
  if (o.report >= 0) return supervise(o.report, enter, program);
  if (const std::string error = enter(); !error.empty()) return report_error(-1, error);
  return program();
}

int become(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  return report_error(-1, command[0] + ": " + std::strerror(errno));
}

}  // namespace

Options parse_options(const std::vector<std::string>& words) {
  Options o;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      o.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    parse_option(words[i], o);
  }
  return o;
}

int serve_locked_down(const Options& o) {
  return run(
      o, [&] { return lock_down(o.lockdown); }, [] { return serve(kSocket); });
}

int exec_locked_down(const Options& o) {
  if (o.rest.empty()) return report_error(o.report, "exec without a command");
  Lockdown l = o.lockdown;
  l.compiler = true;
  const auto enter = [&] {
    std::string error = lock_down(l);
    if (error.empty() && ::access(o.rest[0].c_str(), X_OK) != 0)
      error = o.rest[0] + ": " + std::strerror(errno);
    return error;
  };
  return run(o, enter, [&] { return become(o.rest); });
}

}  // namespace assay::runner
