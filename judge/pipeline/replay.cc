// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "judge/pipeline/grade.h"

namespace assay {
namespace {

std::vector<int> shape_indices(const Problem& p, const Device& d,
                               const std::vector<std::string>& labels) {
  const std::vector<Shape>& all = p.shapes_for(d.info().backend);
  std::vector<int> out;
  for (const std::string& label : labels)
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].label() == label) out.push_back(static_cast<int>(i));
  return out;
}

std::string first_difference(const Record& a, const Record& b) {
  const auto& x = a.check.cases;
  const auto& y = b.check.cases;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const std::string where = fmt::format("{} seed {} case {} output {}", x[i].shape,
                                          x[i].seed_index, x[i].name, x[i].output);
    if (x[i].input_digest != y[i].input_digest)
      return fmt::format("{}: inputs {:016x}, now {:016x}", where, x[i].input_digest,
                         y[i].input_digest);
    if (x[i].output_digest != y[i].output_digest)
      return fmt::format("{}: output {:016x}, now {:016x} (the submission is not deterministic)",
                         where, x[i].output_digest, y[i].output_digest);
  }
  if (x.size() != y.size()) return fmt::format("{} cases then, {} now", x.size(), y.size());
  if (a.check.digest() != b.check.digest()) return "the statistics differ";
  if (a.verdict != b.verdict && a.kind == "check")
    return fmt::format("verdict {} then, {} now", name(a.verdict), name(b.verdict));
  return "";
}

}  // namespace

ReplayResult replay(Device& device, const Problem& problem, const Record& record,
                    SandboxKind sandbox) {
  if (record.device.backend != device.info().backend)
    throw UsageError("record {} was made on another kind of device; pass --device", record.id);
  if (record.problem_version != problem.version)
    throw UsageError("record {} was made on version {} of {}, this is {}: check that version out",
                     record.id, record.problem_version.substr(0, 12), problem.id,
                     problem.version.substr(0, 12));
  GradeOptions options;
  options.bench = false;
  options.sandbox = sandbox;
  options.seed = record.seed;
  options.shapes = shape_indices(problem, device, record.shapes);
  ReplayResult r;
  r.again = grade(device, problem, record.submission, record.ceilings, options);
  r.difference = first_difference(record, r.again);
  r.identical = r.difference.empty();
  return r;
}

}  // namespace assay
