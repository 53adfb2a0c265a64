// SPDX-License-Identifier: Apache-2.0
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {
namespace {

void list_records(Context& context, std::int64_t limit) {
  const std::vector<Record> all = Store(default_database()).list(static_cast<int>(limit));
  if (context.json) {
    Json j = Json::array();
    for (const Record& r : all)
      j.push_back({{"id", r.id},
                   {"created_at", r.created_at},
                   {"kind", r.kind},
                   {"problem", r.problem_id},
                   {"submission", r.submission.label},
                   {"device", r.device.name},
                   {"submission_sha256", r.submission.sha256},
                   {"verdict", name(r.verdict)},
                   {"frac", r.bench.frac},
                   {"sol", r.bench.sol}});
    return print_json(j);
  }
  std::vector<std::vector<std::string>> rows = {
      {"id", "when", "kind", "problem", "submission", "verdict", "frac", "sol"}};
  for (const Record& r : all)
    rows.push_back({std::to_string(r.id), r.created_at, r.kind, r.problem_id, r.submission.label,
                    name(r.verdict), share_text(r.bench.frac), share_text(r.bench.sol)});
  print_table(rows);
}

void show_record(Context& context, std::int64_t id, bool source) {
  const Record r = Store(default_database()).get(id);
  if (context.json) return print_json(to_json(r, source));
  print_record(r);
  if (!source) return;
  for (const SourceFile& f : r.submission.files)
    print_line(fmt::format("\n==> {} <==\n{}", f.path, f.bytes));
}

}  // namespace

void add_records(Parser& parser, Context& context) {
  const auto limit = std::make_shared<std::int64_t>(20);
  parser.add(context, "records", "Lists stored records, newest first")
      .option("--limit", *limit, 1, 1'000'000, "how many")
      .run([&context, limit] { list_records(context, *limit); });

  const auto id = std::make_shared<std::int64_t>(0);
  const auto source = std::make_shared<bool>(false);
  parser.add(context, "show", "Shows one record")
      .argument("RECORD", *id, "its number; see assay records")
      .flag("--source", *source, "with the submission's files")
      .run([&context, id, source] { show_record(context, *id, *source); });
}

}  // namespace assay::cli
