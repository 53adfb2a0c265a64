// SPDX-License-Identifier: Apache-2.0
// admit: do the gates of a problem tell honest kernels from everything else?
#include <cmath>

#include "judge/base/log.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/pipeline/admit.h"

namespace assay::cli {
namespace {

/// JSON has no infinity: null stands for "by more than any number".
Json times(double over) {
  return std::isfinite(over) ? Json(over) : Json(nullptr);
}
std::string times_text(double over) {
  return std::isfinite(over) ? fmt::format("{:.3g}", over) : "-";
}

Json to_json(const AdmitReport& r) {
  Json j = {{"problem", r.problem_id},
            {"admitted", r.objections.empty()},
            {"objections", r.objections},
            {"honest_over", times(r.honest_over())},
            {"fake_over", times(r.fake_over())},
            {"fakes", Json::array()},
            {"honest", Json::array()}};
  for (const FakeRow& f : r.fakes)
    j["fakes"].push_back({{"name", f.name},
                          {"what", f.what},
                          {"cases", f.cases},
                          {"failed", f.failed},
                          {"right", f.right},
                          {"passed", f.passed},
                          {"passes_published", f.passes_published},
                          {"over", times(f.over)},
                          {"weakest", f.weakest}});
  for (const HonestRow& h : r.honest)
    j["honest"].push_back({{"name", h.name},
                           {"peer", h.peer},
                           {"verdict", name(h.verdict)},
                           {"message", h.message},
                           {"over", times(h.over)},
                           {"tightest", h.tightest},
                           {"sol", h.sol}});
  return j;
}

void print(const AdmitReport& r, const Problem& p) {
  print_line(fmt::format("{}  {}\n", p.id, p.title));
  std::vector<std::vector<std::string>> fakes = {
      {"handed in instead", "failed", "of", "right", "times over", "weakest in"}};
  for (const FakeRow& f : r.fakes)
    fakes.push_back({f.what, std::to_string(f.failed), std::to_string(f.cases),
                     std::to_string(f.right), times_text(f.over), f.weakest});
  print_table(fakes);
  print_line("");
  std::vector<std::vector<std::string>> honest = {
      {"honest", "verdict", "times over", "sol", "tightest in"}};
  for (const HonestRow& h : r.honest)
    honest.push_back({h.name, name(h.verdict), times_text(h.over), share_text(h.sol), h.tightest});
  print_table(honest);
  print_line(
      fmt::format("\nThe gates (tolerance, and {:g} times the noise floor) are at 1: honest errors "
                  "reach {}, the cheapest fake {}.",
                  p.noise.max_ratio, times_text(r.honest_over()), times_text(r.fake_over())));
  for (const FakeRow& f : r.fakes)
    if (f.passes_published > 0)
      print_line(
          fmt::format("The published tolerance ({:g} + {:g} * |expected|) alone lets pass: {}",
                      p.published_tolerance->atol, p.published_tolerance->rtol, f.what));
  for (const std::string& o : r.objections) print_line("objection: " + o);
  print_line(fmt::format("{}: {}\n", r.problem_id, r.objections.empty() ? "admitted" : "refused"));
}

}  // namespace

void add_admit(Parser& parser, Context& context) {
  struct Request {
    std::vector<std::string> problems;
    std::vector<int> shapes;
    std::optional<std::uint64_t> seed;
    double budget_s = 0.5;
  };
  const auto q = std::make_shared<Request>();
  Command c = parser.add(context, "admit",
                         "May a problem enter a deck? Tries what is no answer on every case");
  c.arguments("PROBLEM", q->problems, "only these");
  add_device_option(c, context);
  add_sandbox_option(c, context);
  c.option("--shapes", q->shapes, "numbers of shapes, as assay list PROBLEM shows them");
  c.hex_option("--seed", q->seed, "hexadecimal; default: secret and fresh");
  c.option("--budget", q->budget_s, 0.05, 3600, "seconds of measuring per shape");
  c.run([&context, q] {
    set_quiet(context.quiet || context.json);
    std::vector<Problem> problems;
    for (const std::string& id : q->problems) problems.push_back(find_problem(id));
    if (problems.empty()) problems = load_problems();
    GradeOptions options;
    options.sandbox = context.sandbox_kind();
    options.seed = q->seed;
    options.shapes = q->shapes;
    options.bench_options.budget_s = q->budget_s;
    const auto device = context.open_device();
    Store store(default_database());
    const Ceilings ceilings = ceilings_for(*device, store);
    Json all = Json::array();
    for (const Problem& p : problems) {
      const AdmitReport report = admit(*device, p, ceilings, options);
      if (!report.objections.empty()) context.exit_code = kNotAccepted;
      context.json ? all.push_back(to_json(report)) : print(report, p);
    }
    if (context.json) print_json(all);
  });
}

}  // namespace assay::cli
