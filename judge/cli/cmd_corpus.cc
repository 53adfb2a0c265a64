// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "judge/base/fault.h"
#include "judge/base/log.h"
#include "judge/base/paths.h"
#include "judge/base/text.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/pipeline/corpus.h"

namespace assay::cli {
namespace {

std::vector<CorpusCase> chosen(const std::vector<std::string>& names) {
  std::vector<CorpusCase> all = load_corpus(home_dir() / "corpus");
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const CorpusCase& c : all) known.push_back(c.name);
  std::vector<CorpusCase> out;
  for (const std::string& n : names) {
    const auto it = std::find(known.begin(), known.end(), n);
    if (it == known.end()) throw UsageError("no corpus case '{}'{}", n, suggestion(n, known));
    out.push_back(all[static_cast<std::size_t>(it - known.begin())]);
  }
  return out;
}

Json to_json(const CorpusReport& report) {
  Json j = {{"cases", report.cases},
            {"caught", report.caught},
            {"accepted", report.accepted},
            {"missed", report.missed},
            {"false_alarms", report.false_alarms},
            {"unexpected", report.unexpected},
            {"left_behind", report.left_behind},
            {"skipped", report.skipped},
            {"rows", Json::array()}};
  for (const CorpusRow& row : report.rows)
    j["rows"].push_back({{"case", row.expected.name},
                         {"problem", row.expected.problem},
                         {"device", row.expected.device == wire::Backend::kCpu ? "cpu" : "cuda"},
                         {"kind", row.expected.hostile ? "hostile" : "lookalike"},
                         {"outcome", row.outcome},
                         {"verdict", row.outcome == "skipped" ? "" : name(row.record.verdict)},
                         {"findings", finding_codes(row.record.findings)},
                         {"left_behind", row.left_behind},
                         {"message", row.record.message},
                         {"wall_s", row.wall_s}});
  return j;
}

/// A fault of the judge or the machine outweighs what it made of the cases.
int exit_of_all(const CorpusReport& report) {
  for (const CorpusRow& row : report.rows)
    if (row.outcome != "skipped" && row.outcome != "caught" &&
        row.record.verdict == Verdict::kInternalError)
      return kFault;
  return report.ok() ? kAccepted : kNotAccepted;
}

void print(const CorpusReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"case", "problem", "kind", "outcome", "verdict", "findings"}};
  for (const CorpusRow& row : report.rows)
    if (row.outcome != "skipped")
      rows.push_back({row.expected.name, row.expected.problem,
                      row.expected.hostile ? "hostile" : "lookalike", row.outcome,
                      name(row.record.verdict), finding_codes(row.record.findings)});
  print_table(rows);
  for (const CorpusRow& row : report.rows)
    if (row.outcome == "missed" || row.outcome == "false_alarm" || row.outcome == "unexpected")
      print_line(fmt::format("{}: {}: {}", row.expected.name, row.outcome, row.record.message));
  for (const CorpusRow& row : report.rows)
    for (const std::string& what : row.left_behind)
      print_line(fmt::format("{}: left behind: {}", row.expected.name, what));
  print_line(
      fmt::format("\ncases {}  caught {}  accepted {}  missed {}  false_alarms {}  unexpected "
                  "{}  left_behind {}  skipped {}",
                  report.cases, report.caught, report.accepted, report.missed, report.false_alarms,
                  report.unexpected, report.left_behind, report.skipped));
}

}  // namespace

void add_corpus(Parser& parser, Context& context) {
  Command c = parser.add(context, "corpus",
                         "Grades every hostile and look-alike case; exit 0 if the judge saw all");
  add_device_option(c, context);
  add_sandbox_option(c, context);
  const auto names = std::make_shared<std::vector<std::string>>();
  c.arguments("CASE", *names, "only these");
  c.run([&context, names] {
    set_quiet(context.quiet || context.json);
    const std::vector<CorpusCase> cases = chosen(*names);
    const auto device = context.open_device();
    Store store(default_database());
    const CorpusReport report =
        run_corpus(*device, cases, ceilings_for(*device, store), context.sandbox_kind());
    context.exit_code = exit_of_all(report);
    context.json ? print_json(to_json(report)) : print(report);
  });
}

}  // namespace assay::cli
