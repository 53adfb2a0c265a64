// SPDX-License-Identifier: Apache-2.0
#include "judge/base/text.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"
#include "judge/problem/problem.h"

namespace assay::cli {
namespace {

/// As problem.yaml writes it.
std::string draw_text(const TensorSpec& t) {
  if (!t.draw) return "derived";
  const Distribution& d = *t.draw;
  switch (d.kind) {
    case Distribution::Kind::kNormal:
      return d.b == 0 ? fmt::format("normal({:g})", d.a)
                      : fmt::format("normal({:g}, {:g})", d.a, d.b);
    case Distribution::Kind::kUniform:
      return fmt::format("uniform({:g}, {:g})", d.a, d.b);
    case Distribution::Kind::kIntegers:
      return fmt::format("integers({:g}, {:g})", d.a, d.b);
    case Distribution::Kind::kConstant:
      return fmt::format("constant({:g})", d.a);
  }
  return "";
}

std::string extents(const TensorSpec& t) {
  std::vector<std::string> out;
  for (const Formula& f : t.shape) out.push_back(f.text());
  return "[" + join(out) + "]";
}

struct Part {
  const char* contract;
  const std::vector<TensorSpec>* tensors;

  std::string draw(const TensorSpec& t) const {
    return contract == std::string("output") ? "" : draw_text(t);
  }
};
std::vector<Part> parts(const Problem& p) {
  return {{"constant", &p.constants},
          {"input", &p.inputs},
          {"output", &p.outputs},
          {"inout", &p.inouts}};
}

Json to_json(const Problem& p) {
  Json j = {{"id", p.id},           {"title", p.title},     {"deck", p.deck},
            {"summary", p.summary}, {"version", p.version}, {"axes", p.axes},
            {"regime", p.regime},   {"peak", p.peak}};
  for (const Part& part : parts(p))
    for (const TensorSpec& t : *part.tensors)
      j["tensors"].push_back({{"name", t.name},
                              {"contract", part.contract},
                              {"dtype", name(t.dtype)},
                              {"shape", extents(t)},
                              {"draw", part.draw(t)}});
  for (const auto& [device, shapes] : p.shapes)
    for (const Shape& s : shapes) j["shapes"][device].push_back(s.label());
  j["tolerance"] = {{"atol", p.tolerance.atol}, {"rtol", p.tolerance.rtol}};
  j["seeds"] = p.seeds;
  j["stress"] = Json::array();
  for (const StressCase& s : p.stress)
    j["stress"].push_back({{"name", s.name},
                           {"scale", s.scale},
                           {"atol", s.tolerance.atol},
                           {"rtol", s.tolerance.rtol}});
  j["structural"] = p.structural;
  j["published"] = {{"flops", p.published_flops.text()}, {"bytes", p.published_bytes.text()}};
  j["floor"] = {{"flops", p.floor.flops.text()},
                {"rate", p.floor.rate},
                {"read_bytes", p.floor.read_bytes.text()},
                {"write_bytes", p.floor.write_bytes.text()}};
  j["forbidden"] = p.forbidden;
  return j;
}

std::string tolerance_text(const Tolerance& t) {
  if (t.atol == 0 && t.rtol == 0) return "exact";
  return fmt::format("|got - expected| <= {:g} + {:g} * |expected|", t.atol, t.rtol);
}

void print_all(const std::vector<Problem>& all) {
  std::vector<std::vector<std::string>> rows = {{"problem", "deck", "regime", "shapes", "what"}};
  for (const Problem& p : all) {
    std::vector<std::string> counts;
    for (const auto& [device, shapes] : p.shapes)
      counts.push_back(fmt::format("{} {}", shapes.size(), device));
    rows.push_back({p.id, p.deck, p.regime, join(counts), p.summary});
  }
  print_table(rows);
}

void print_one(const Problem& p) {
  print_line(
      fmt::format("{}  {}\n{}\nversion {}\n", p.id, p.title, p.summary, p.version.substr(0, 12)));
  std::vector<std::vector<std::string>> rows = {{"tensor", "contract", "dtype", "shape", "drawn"}};
  for (const Part& part : parts(p))
    for (const TensorSpec& t : *part.tensors)
      rows.push_back({t.name, part.contract, name(t.dtype), extents(t), part.draw(t)});
  print_table(rows);
  for (const auto& [device, shapes] : p.shapes) {
    print_line(fmt::format("\nshapes on {}", device));
    for (std::size_t i = 0; i < shapes.size(); ++i)
      print_line(fmt::format("  {}  {}", i, shapes[i].label()));
  }
  print_line("\ntolerance  " + tolerance_text(p.tolerance));
  for (const StressCase& s : p.stress)
    print_line(fmt::format("           {}: {}", s.name, tolerance_text(s.tolerance)));
  if (!p.structural.empty()) print_line("cases      " + join(p.structural));
  print_line(fmt::format("frac       {} of the {} peak",
                         p.regime == "memory" ? p.published_bytes.text() + " bytes"
                                              : p.published_flops.text() + " operations",
                         p.peak));
  print_line(fmt::format("sol        the longer of {} operations at the {} rate and {} + {} bytes",
                         p.floor.flops.text(), p.floor.rate, p.floor.read_bytes.text(),
                         p.floor.write_bytes.text()));
  for (const std::string& f : p.forbidden) print_line("forbidden  " + f);
}

}  // namespace

void add_list(Parser& parser, Context& context) {
  Command c = parser.add(context, "list", "Lists the problems, or shows one");
  const auto id = std::make_shared<std::string>();
  c.argument("PROBLEM", *id, "show this one", false);
  c.run([&context, id] {
    if (!id->empty()) {
      const Problem p = find_problem(*id);
      context.json ? print_json(to_json(p)) : print_one(p);
      return;
    }
    const std::vector<Problem> all = load_problems();
    if (!context.json) return print_all(all);
    Json j = Json::array();
    for (const Problem& p : all) j.push_back(to_json(p));
    print_json(j);
  });
}

}  // namespace assay::cli
