// SPDX-License-Identifier: Apache-2.0
// The one place where what went wrong becomes a line on stderr and an exit code.
#include <csignal>
#include <cstdio>
#include <cstring>

#include "judge/base/fault.h"
#include "judge/base/interrupt.h"
#include "judge/base/log.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {
namespace {

int fail(bool json, int code, const char* kind, std::string message) {
  clear_progress();
  while (!message.empty() && message.back() == '\n') message.pop_back();
  std::fprintf(stderr, "assay: %s\n", message.c_str());
  if (json) {
    const Json error = {{"error", {{"kind", kind}, {"message", message}}}};
    std::printf("%s\n", error.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return code;
}

int run(int argc, char** argv) {
  Context context;
  Parser parser("Assay judges GPU kernels: is it right, how fast is it, was it earned honestly?");
  add_list(parser, context);
  add_grade(parser, context);
  add_replay(parser, context);
  add_probe(parser, context);
  add_doctor(parser, context);
  add_corpus(parser, context);
  add_records(parser, context);
  add_demo(parser, context);
  add_version(parser, context);
  bool json = false;  // also where parsing fails before --json is reached
  for (int i = 1; i < argc; ++i) json = json || std::strcmp(argv[i], "--json") == 0;
  try {
    parser.parse(argc, argv);
    return context.exit_code;
  } catch (const UsageError& e) {
    return fail(json, kUsage, "usage", e.what());
  } catch (const Interrupted&) {
    return fail(json, kInterrupted, "interrupted", "interrupted; nothing was recorded");
  } catch (const std::exception& e) {
    return fail(json, kFault, "judge", e.what());
  }
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  assay::install_interrupt_handlers();
  return assay::cli::run(argc, argv);
}
