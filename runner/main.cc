// SPDX-License-Identifier: Apache-2.0
// The untrusted program. Not for people: the judge's sandbox starts it (judge/sandbox/), in up to
// three steps that end in the hostile one.
//
//   enclose ... -- COMMAND   new namespaces, where bubblewrap does not make them (enclose.h)
//   serve [flags]            first process (supervise.h) and its child: locks itself down
//                            (lockdown.h), then answers the judge on descriptor 3 (serve.h)
//   exec [flags] -- COMMAND  the same, but the child becomes a compiler
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "runner/enclose.h"
#include "runner/exec.h"
#include "runner/supervise.h"

namespace {

int dispatch(const std::vector<std::string>& words) {
  using namespace assay::runner;
  const std::string what = words.empty() ? "" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (what == "serve") return serve_locked_down(parse_options(rest));
  if (what == "exec") return exec_locked_down(parse_options(rest));
  if (what == "enclose") return enclose(rest, kReportFd);
  std::fputs("assay-runner: started by the judge only: serve, exec or enclose\n", stderr);
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    return assay::runner::report_error(-1, std::string("cannot use '") + e.what() + "'");
  }
}
