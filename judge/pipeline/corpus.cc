// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/corpus.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/interrupt.h"
#include "judge/base/log.h"
#include "judge/base/paths.h"
#include "judge/pipeline/grade.h"
#include "judge/pipeline/leftovers.h"

namespace assay {
namespace {

[[noreturn]] void bad(const std::filesystem::path& file, const YAML::Mark& mark,
                      const std::string& what) {
  throw UsageError("{}:{}: {}", file.string(), mark.is_null() ? 1 : mark.line + 1, what);
}

/// One word or a list of words.
std::vector<std::string> words(const YAML::Node& n) {
  if (!n) return {};
  if (n.IsScalar()) return {n.as<std::string>()};
  return n.as<std::vector<std::string>>();
}

CorpusCase load_case(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "expect.yaml";
  CorpusCase c;
  c.name = folder.filename();
  c.folder = folder;
  try {
    const YAML::Node y = YAML::Load(read_file(file));
    if (!y.IsMap()) bad(file, y.Mark(), "expected a map");
    for (const auto& entry : y) {
      const auto key = entry.first.as<std::string>();
      static const std::string known[] = {"problem", "device",   "kind",
                                          "verdict", "findings", "why"};
      if (std::find(std::begin(known), std::end(known), key) == std::end(known))
        bad(file, entry.first.Mark(), fmt::format("unknown key '{}'", key));
    }
    for (const char* key : {"problem", "device", "kind", "verdict", "why"})
      if (!y[key]) bad(file, y.Mark(), fmt::format("missing key '{}'", key));
    c.problem = y["problem"].as<std::string>();
    const auto device = y["device"].as<std::string>();
    if (device != "cpu" && device != "cuda") bad(file, y["device"].Mark(), "device is cpu or cuda");
    c.device = device == "cpu" ? wire::Backend::kCpu : wire::Backend::kCuda;
    const auto kind = y["kind"].as<std::string>();
    if (kind != "hostile" && kind != "lookalike")
      bad(file, y["kind"].Mark(), "kind is hostile or lookalike");
    c.hostile = kind == "hostile";
    for (const std::string& w : words(y["verdict"])) c.verdicts.push_back(verdict_from_name(w));
    c.findings = words(y["findings"]);
    for (const std::string& f : c.findings) rule_of(f);
    c.why = y["why"].as<std::string>();
    const bool accepts = std::count(c.verdicts.begin(), c.verdicts.end(), Verdict::kAccepted) > 0;
    if (accepts == c.hostile)
      bad(file, y["verdict"].Mark(), "a hostile case cannot expect `accepted`, a lookalike must");
  } catch (const YAML::Exception& e) {
    bad(file, e.mark, e.msg);
  } catch (const JudgeError& e) {
    throw UsageError("{}: {}", file.string(), e.what());
  }
  return c;
}

/// What the record means for this case, in one word.
std::string outcome_of(const CorpusCase& c, const Record& r) {
  const bool accepted = r.verdict == Verdict::kAccepted;
  if (!c.hostile) return accepted ? "accepted" : "false_alarm";
  if (accepted) return "missed";
  if (std::find(c.verdicts.begin(), c.verdicts.end(), r.verdict) == c.verdicts.end())
    return "unexpected";
  for (const std::string& f : c.findings)
    if (std::none_of(r.findings.begin(), r.findings.end(),
                     [&](const Finding& x) { return x.code == f; }))
      return "unexpected";
  return "caught";
}

}  // namespace

std::vector<CorpusCase> load_corpus(const std::filesystem::path& root) {
  if (!std::filesystem::is_directory(root)) throw UsageError("no corpus at {}", root.string());
  std::vector<CorpusCase> cases;
  for (const auto& e : std::filesystem::directory_iterator(root))
    if (e.is_directory()) cases.push_back(load_case(e.path()));
  std::sort(cases.begin(), cases.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return cases;
}

CorpusReport run_corpus(Device& device, const std::vector<CorpusCase>& cases,
                        const Ceilings& measured, SandboxKind sandbox) {
  CorpusReport report;
  Leftovers leftovers;
  for (const CorpusCase& c : cases) {
    throw_if_interrupted();
    CorpusRow row;
    row.expected = c;
    report.cases += 1;
    if (c.device != device.info().backend) {
      row.outcome = "skipped";
      report.skipped += 1;
      report.rows.push_back(std::move(row));
      continue;
    }
    const double begin_us = now_us();
    const Problem problem = find_problem(c.problem);
    const Language language = c.device == wire::Backend::kCpu ? Language::kCpp : Language::kCuda;
    GradeOptions options;
    options.sandbox = sandbox;
    options.bench_options.budget_s = 0.6;
    options.bench_options.min_rounds = 6;
    row.record = grade(device, problem, read_submission(c.folder, language), measured, options);
    row.wall_s = (now_us() - begin_us) * 1e-6;
    row.outcome = outcome_of(c, row.record);
    row.left_behind = leftovers.take();
    report.caught += row.outcome == "caught";
    report.accepted += row.outcome == "accepted";
    report.missed += row.outcome == "missed";
    report.false_alarms += row.outcome == "false_alarm";
    report.unexpected += row.outcome == "unexpected";
    progress(fmt::format("corpus {}/{}  {}: {} ({})", report.cases, cases.size(), c.name,
                         row.outcome, name(row.record.verdict)));
    report.rows.push_back(std::move(row));
  }
  for (CorpusRow& row : report.rows) {
    row.left_behind = Leftovers::still_there(row.left_behind);
    report.left_behind += !row.left_behind.empty();
  }
  clear_progress();
  return report;
}

}  // namespace assay
