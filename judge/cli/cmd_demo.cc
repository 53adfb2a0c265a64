// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "judge/base/fault.h"
#include "judge/base/log.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/pipeline/demo.h"
#include "judge/pipeline/grade.h"

namespace assay::cli {
namespace {

using Row = std::vector<std::string>;

/// One line per shape measured, or one for a submission that was not.
std::vector<Row> rows_of(const Record& r, const std::string& submission) {
  std::vector<Row> rows;
  for (const ShapeBench& s : r.bench.shapes)
    rows.push_back({r.problem_id, submission, s.shape, time_text(s.median_us), share_text(s.frac),
                    share_text(s.sol), name(r.verdict), finding_codes(r.findings, s.shape)});
  if (rows.empty())
    rows.push_back(
        {r.problem_id, submission, "-", "-", "-", "-", name(r.verdict), finding_codes(r.findings)});
  return rows;
}

void print(const Device& device, const std::vector<Row>& table,
           const std::vector<std::string>& messages) {
  print_line(fmt::format("{}: every output verified, every time bounded by the judge's own clock\n",
                         device.info().name));
  print_table(table);
  for (const std::string& m : messages) print_line(m);
}

void run(Context& context, double budget_s) {
  set_quiet(context.quiet || context.json);
  const auto device = context.open_device();
  const bool cuda = device->info().backend == wire::Backend::kCuda;
  Store store(default_database());
  const Ceilings ceilings = ceilings_for(*device, store);
  const Language language = cuda ? Language::kCuda : Language::kCpp;
  const std::vector<Shipped> all = shipped_submissions(language);
  if (all.empty()) throw JudgeError("no shipped submission is written for this device");
  GradeOptions options;
  options.sandbox = context.sandbox_kind();
  options.bench_options.budget_s = budget_s;
  std::vector<Row> table = {
      {"problem", "submission", "shape", "time", "frac", "sol", "verdict", "findings"}};
  Json records = Json::array();
  std::vector<std::string> messages;
  Keeper keeper(&store);
  for (const Shipped& s : all) {
    const Problem problem = find_problem(s.problem);
    Record r = grade(*device, problem, read_submission(s.folder, language), ceilings, options);
    keeper.keep(r);
    context.exit_code = std::max(context.exit_code, exit_of(r.verdict));
    records.push_back(to_json(r));
    keeper.note(records.back());
    for (Row& row : rows_of(r, s.name)) table.push_back(std::move(row));
    if (!r.message.empty())
      messages.push_back(fmt::format("{} {}: {}", s.problem, s.name, r.message));
  }
  context.json ? print_json(records) : print(*device, table, messages);
  keeper.complain();
}

}  // namespace

void add_demo(Parser& parser, Context& context) {
  Command c = parser.add(context, "demo", "Grades every shipped submission and shows a table");
  add_device_option(c, context);
  add_sandbox_option(c, context);
  const auto budget_s = std::make_shared<double>(0.7);
  c.option("--budget", *budget_s, 0.05, 3600, "seconds of measuring per shape");
  c.run([&context, budget_s] { run(context, *budget_s); });
}

}  // namespace assay::cli
