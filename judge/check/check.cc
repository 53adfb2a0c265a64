// SPDX-License-Identifier: Apache-2.0
#include "judge/check/check.h"

#include <algorithm>
#include <cmath>

#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/log.h"
#include "judge/run/workbench.h"

namespace assay {
namespace {

bool touches_constants(const Problem& p, const CaseSpec& c) {
  return std::any_of(p.constants.begin(), p.constants.end(),
                     [&](const TensorSpec& t) { return c.scale.contains(t.name); });
}

std::uint64_t bits_of(double v) {
  std::uint64_t u;
  std::memcpy(&u, &v, 8);
  return u;
}

void add_downgrade_finding(const Problem& p, CheckReport& report) {
  const CaseResult* worst = nullptr;
  for (const CaseResult& c : report.cases)
    if (c.stats.ok() && c.noise_ratio > p.noise.max_ratio &&
        (!worst || c.noise_ratio > worst->noise_ratio))
      worst = &c;
  if (worst == nullptr) return;
  report.findings.push_back(
      {"precision_downgrade", worst->shape,
       fmt::format("RMS error of {} in case {} is {:.1f} times the noise floor of the declared "
                   "precision (limit {:.1f})",
                   worst->output, worst->name, worst->noise_ratio, p.noise.max_ratio)});
}

}  // namespace

std::vector<CaseSpec> check_cases(const Problem& p) {
  std::vector<CaseSpec> cases = {{"nominal", {}, false, p.tolerance}};
  for (const StressCase& s : p.stress) cases.push_back({s.name, s.scale, false, s.tolerance});
  for (const std::string& s : p.structural) cases.push_back({s, {}, true, p.tolerance});
  return cases;
}

double noise_ratio(const CompareStats& s, const Noise& noise) {
  const double accumulation = noise.accumulate_relative * s.rms_expected();
  const double floor = std::hypot(s.rms_noise(), accumulation);
  if (s.rms_error() == 0) return 0;
  return floor > 0 ? s.rms_error() / floor : INFINITY;
}

std::string describe_failure(const CaseResult& c, const Tolerance& t) {
  const CompareStats& s = c.stats;
  return fmt::format(
      "{} seed {} case {}: {} of {} elements of {} are wrong{}; worst at index {}: expected "
      "{:.9g}, "
      "got {:.9g} (tolerance {:g} + {:g} * |expected|)",
      c.shape, c.seed_index, c.name, s.bad, s.count, c.output,
      s.non_finite > 0 ? fmt::format(" ({} not finite)", s.non_finite) : "", s.worst_index,
      s.worst_expected, s.worst_got, t.atol, t.rtol);
}

std::uint64_t CheckReport::digest() const {
  std::uint64_t d = 0;
  const auto mix = [&](std::uint64_t v) { d = wire::digest_chain(d, v); };
  for (const CaseResult& c : cases) {
    mix(c.input_digest);
    mix(c.output_digest);
    mix(static_cast<std::uint64_t>(c.stats.bad));
    mix(bits_of(c.stats.max_abs));
    mix(bits_of(c.stats.sum_sq_error));
    mix(bits_of(c.stats.sum_sq_expected));
  }
  return d;
}

void check_shape(Workbench& bench, std::uint64_t seed, CheckReport& report) {
  const Problem& p = bench.problem();
  const std::string shape = bench.shape().label();
  const std::vector<CaseSpec> cases = check_cases(p);
  const int slots = bench.first_aligned_slot() + 1;  // the odd ones and an aligned one
  int turn = 0;
  bool late = false;
  for (int s = 0; s < p.seeds; ++s) {
    bool nominal_constants = false;
    for (const CaseSpec& c : cases) {
      progress(fmt::format("check  {}  {}  seed {}/{}  {}", p.id, shape, s + 1, p.seeds, c.name));
      const std::uint64_t case_seed =
          derive_seed(seed, shape + "/" + c.name, static_cast<std::uint64_t>(s));
      if (touches_constants(p, c) || !nominal_constants) {
        bench.set_constants(derive_seed(seed, shape + "/constants", static_cast<std::uint64_t>(s)),
                            c);
        nominal_constants = !touches_constants(p, c);
      }
      bench.draw_base(0, case_seed, c);
      const int slot = turn++ % slots;  // the same address now and then, with other bytes
      bench.assign(slot, 0, 0);
      const std::uint64_t inputs = bench.input_digest(slot);
      const VerifiedWindow w = bench.run({static_cast<std::uint32_t>(slot)}, c.tolerance);
      for (const OutputStats& o : w.slots[0]) {
        CaseResult r{shape,  s,       c.name, o.output, o.stats, noise_ratio(o.stats, p.noise),
                     inputs, o.digest};
        report.cases.push_back(r);
      }
      if (w.late_write && !late) {
        late = true;
        report.findings.push_back({"late_write", shape, w.late_evidence});
      }
      for (auto r = report.cases.end() - static_cast<std::ptrdiff_t>(w.slots[0].size());
           r != report.cases.end(); ++r)
        if (!r->stats.ok()) {
          add_downgrade_finding(p, report);  // the cases before may say why
          throw SubmissionFault(
              r->stats.non_finite > 0 ? Verdict::kNonFinite : Verdict::kWrongAnswer,
              describe_failure(*r, c.tolerance));
        }
    }
  }
  add_downgrade_finding(p, report);
}

}  // namespace assay
