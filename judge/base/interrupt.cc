// SPDX-License-Identifier: Apache-2.0
#include "judge/base/interrupt.h"

#include <csignal>

#include "judge/base/fault.h"

namespace assay {
namespace {

volatile std::sig_atomic_t g_signals = 0;

void on_signal(int number) {
  g_signals = g_signals + 1;
  if (g_signals < 2) return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  // No SA_RESTART: waits return early and look at interrupted().
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return g_signals != 0;
}

void throw_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace assay
