// SPDX-License-Identifier: Apache-2.0
// grade, check and bench: one flow, with or without its halves.
#include "judge/base/fault.h"
#include "judge/base/log.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/pipeline/grade.h"

namespace assay::cli {
namespace {

struct Request {
  std::string problem, path;
  std::optional<std::uint64_t> seed;
  std::vector<int> shapes;
  double budget_s = BenchOptions{}.budget_s;
  bool no_record = false;
  bool check = true, bench = true;
};

void run(Context& context, const Request& q) {
  set_quiet(context.quiet || context.json);
  const Problem problem = find_problem(q.problem);
  GradeOptions options;
  options.check = q.check;
  options.bench = q.bench;
  options.sandbox = context.sandbox_kind();
  options.seed = q.seed;
  options.shapes = q.shapes;
  options.bench_options.budget_s = q.budget_s;
  const auto device = context.open_device();
  const bool cuda = device->info().backend == wire::Backend::kCuda;
  const Submission submission = read_submission(q.path, cuda ? Language::kCuda : Language::kCpp);
  // Opened first: an hour of work must not end at a database that cannot be written.
  std::optional<Store> store;
  if (!q.no_record) store.emplace(default_database());
  const Ceilings ceilings = !q.bench ? Ceilings{}
                            : store  ? ceilings_for(*device, *store)
                                     : device->probe(true);
  Record record = grade(*device, problem, submission, ceilings, options);
  context.exit_code = exit_of(record.verdict);
  Keeper keeper(store ? &*store : nullptr);
  keeper.keep(record);
  if (context.json) {
    Json json = to_json(record);
    keeper.note(json);
    print_json(json);
  } else {
    print_record(record);
  }
  keeper.complain();
}

void add(Parser& parser, Context& context, const std::string& name, const std::string& what,
         bool check, bool bench) {
  const auto q = std::make_shared<Request>();
  q->check = check;
  q->bench = bench;
  Command c = parser.add(context, name, what);
  c.argument("PROBLEM", q->problem, "see assay list");
  c.argument("PATH", q->path, "a folder of sources, or one file");
  add_device_option(c, context);
  add_sandbox_option(c, context);
  c.option("--shapes", q->shapes, "numbers of shapes, as assay list PROBLEM shows them");
  c.hex_option("--seed", q->seed, "hexadecimal; default: secret and fresh");
  if (bench) c.option("--budget", q->budget_s, 0.05, 3600, "seconds of measuring per shape");
  c.flag("--no-record", q->no_record, "do not store the result");
  c.run([&context, q] { run(context, *q); });
}

}  // namespace

void add_grade(Parser& parser, Context& context) {
  add(parser, context, "grade", "Builds, checks, measures and audits a submission", true, true);
  add(parser, context, "check", "Is it right? Everything but the measurement", true, false);
  add(parser, context, "bench", "How fast is it? Every timed output is still verified", false,
      true);
}

}  // namespace assay::cli
