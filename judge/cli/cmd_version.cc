// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {
namespace {

#if defined(ASSAY_HAVE_CUDA)
constexpr bool kCuda = true;
#else
constexpr bool kCuda = false;
#endif

}  // namespace

std::string version_text() {
  return fmt::format("assay {}, {} CUDA", ASSAY_VERSION, kCuda ? "with" : "without");
}

void add_version(Parser& parser, Context& context) {
  Command c = parser.add(context, "version", "What this is");
  c.run([&context] {
    if (context.json)
      print_json({{"assay", ASSAY_VERSION}, {"cuda", kCuda}, {"wire", wire::kVersion}});
    else
      print_line(version_text());
  });
}

}  // namespace assay::cli
