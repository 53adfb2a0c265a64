// SPDX-License-Identifier: Apache-2.0
#include "judge/base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace assay {
namespace {

bool g_quiet = false;
bool g_line_open = false;  // a progress line is on the screen

bool on_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1;
  return terminal;
}

std::size_t columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

void set_quiet(bool quiet) {
  g_quiet = quiet;
}

void progress(const std::string& line) {
  if (g_quiet) return;
  if (!on_terminal()) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  std::fprintf(stderr, "\r\033[K%s", line.substr(0, columns()).c_str());
  g_line_open = true;
}

void clear_progress() {
  if (g_line_open) std::fputs("\r\033[K", stderr);
  g_line_open = false;
}

void warn(const std::string& line) {
  clear_progress();
  std::fprintf(stderr, "assay: warning: %s\n", line.c_str());
}

}  // namespace assay
