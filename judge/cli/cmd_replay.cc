// SPDX-License-Identifier: Apache-2.0
#include "judge/base/fault.h"
#include "judge/base/log.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/pipeline/grade.h"

namespace assay::cli {

void add_replay(Parser& parser, Context& context) {
  Command c = parser.add(context, "replay", "Repeats a record's check, bit for bit, from its seed");
  add_sandbox_option(c, context);
  const auto id = std::make_shared<std::int64_t>(0);
  c.argument("RECORD", *id, "its number; see assay records");
  c.run([&context, id] {
    set_quiet(context.quiet || context.json);
    const Record record = Store(default_database()).get(*id);
    if (record.kind == "bench")
      throw UsageError("record {} is a bench, which has no check to repeat", *id);
    context.device = record.device.backend == wire::Backend::kCuda ? "cuda" : "cpu";
    const auto device = context.open_device();
    const ReplayResult r =
        replay(*device, find_problem(record.problem_id), record, context.sandbox_kind());
    const bool fault = r.again.verdict == Verdict::kInternalError;
    context.exit_code = fault ? kFault : r.identical ? kAccepted : kNotAccepted;
    if (context.json) {
      print_json({{"record", record.id},
                  {"identical", r.identical},
                  {"difference", r.difference},
                  {"cases", r.again.check.cases.size()},
                  {"digest", fmt::format("{:016x}", record.check.digest())},
                  {"digest_again", fmt::format("{:016x}", r.again.check.digest())},
                  {"verdict_again", name(r.again.verdict)}});
      return;
    }
    if (fault)
      print_line("not replayed: " + r.again.message);
    else if (r.identical)
      print_line(fmt::format("identical: {} outputs of record {}, digest {:016x}",
                             r.again.check.cases.size(), record.id, r.again.check.digest()));
    else
      print_line(fmt::format("different: {}", r.difference));
  });
}

}  // namespace assay::cli
