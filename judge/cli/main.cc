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

int fail(bool json, int code, const char* kind, const std::string& message) {
  clear_progress();
  std::fprintf(stderr, "assay: %s\n", one_line(message).c_str());
  if (json && !json_printed()) {
    const Json error = {{"error", {{"kind", kind}, {"message", message}}}};
    std::printf("%s\n", error.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return code;
}

int run(int argc, char** argv) {
  Context context;
  Parser parser("Assay judges GPU kernels: is it right, how fast is it, was it earned honestly?",
                version_text());
  add_list(parser, context);
  add_grade(parser, context);
  add_replay(parser, context);
  add_probe(parser, context);
  add_doctor(parser, context);
  add_corpus(parser, context);
  add_admit(parser, context);
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
    return fail(json, kInterrupted, "interrupted",
                "interrupted; what was not finished is not recorded");
  } catch (const std::exception& e) {
    return fail(json, kFault, "judge", e.what());
  }
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  // A closed pipe and a file that may not grow are failures of a write, which say so. Not SIG_IGN:
  // that would be inherited by what is executed, and a limit on files is one of the sandbox's
  // walls.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, [](int) {});
  assay::install_interrupt_handlers();
  return assay::cli::run(argc, argv);
}
