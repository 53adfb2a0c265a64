// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {

void add_version(Parser& parser, Context& context) {
  Command c = parser.add(context, "version", "What this is");
  c.run([&context] {
#if defined(ASSAY_HAVE_CUDA)
    const bool cuda = true;
#else
    const bool cuda = false;
#endif
    if (context.json)
      print_json({{"assay", ASSAY_VERSION}, {"cuda", cuda}, {"wire", wire::kVersion}});
    else
      print_line(fmt::format("assay {}, {} CUDA", ASSAY_VERSION, cuda ? "with" : "without"));
  });
}

}  // namespace assay::cli
