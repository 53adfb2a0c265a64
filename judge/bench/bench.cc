// SPDX-License-Identifier: Apache-2.0
#include "judge/bench/bench.h"

#include <algorithm>
#include <cmath>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/hash.h"
#include "judge/base/log.h"
#include "judge/bench/samples.h"
#include "judge/bench/stats.h"
#include "judge/check/check.h"
#include "judge/run/workbench.h"

namespace assay {
namespace {

bool is_cpu(const Device& d) {
  return d.info().backend == wire::Backend::kCpu;
}

/// A window shorter than this is mostly the two ends of it.
constexpr double kCpuWindowUs = 8e3, kGpuWindowUs = 10e3;

class Bench {
 public:
  Bench(Workbench& wb, const Control& control, const BenchOptions& options, std::uint64_t seed)
      : wb_(wb), control_(control), options_(options), seed_(seed), cpu_(is_cpu(wb.device())) {
    nominal_.tolerance = wb.problem().tolerance;
  }

  Samples measure() {
    wb_.set_constants(next("constants"), nominal_);
    for (int b = 0; b < wb_.base_count(); ++b) wb_.draw_base(b, next("base"), nominal_);
    const double begin_us = now_us();
    calibrate();
    for (int round = 0; round < options_.max_rounds; ++round) {
      report_progress(round);
      measure_round(round);
      if (round + 1 >= options_.min_rounds && (precise() || now_us() - begin_us > budget_us()))
        break;
    }
    return std::move(samples_);
  }

 private:
  double budget_us() const { return options_.budget_s * 1e6; }
  std::uint64_t next(const char* label) { return derive_seed(seed_, label, counter_++); }

  /// Every slot is called once: what a submission sets up per address (a captured graph) is then
  /// done, and caches and clocks have settled. The last window fixes the number of calls.
  void calibrate() {
    const int first = wb_.first_aligned_slot(), n = wb_.slot_count() - first;
    const int most = std::max(1, n * 2 / 5);
    Window w;
    for (int at = 0; at < n; at += most) {
      std::vector<std::uint32_t> slots;
      for (int s = at; s < std::min(n, at + most); ++s)
        slots.push_back(static_cast<std::uint32_t>(first + s));
      w = run(WindowKind::kRekeyed, slots, Rewrite::kRekey);
    }
    w = run(WindowKind::kRekeyed, choose(std::min(2, most)), Rewrite::kRekey);
    const double each_us = median(w.call_us) + control_.per_call_us;
    calls_ = std::clamp(static_cast<int>((cpu_ ? kCpuWindowUs : kGpuWindowUs) / each_us),
                        std::min(2, most), most);
  }

  void measure_round(int round) {
    // Rounds 1 and 3 are sure to be fresh, so that there is always something to compare; the rest
    // is secret.
    const bool fresh = round == 1 || round == 3 || next("kind") % 5 == 0;
    const ClockSample before = wb_.device().sample_clocks();
    const std::size_t first = samples_.windows.size();
    if (fresh) {
      const int most = cpu_ ? calls_ : std::min(calls_, 24);  // an oracle per slot
      keep(run(WindowKind::kFresh, choose(most), Rewrite::kFresh));
    } else {
      measure_pair();
    }
    keep(run(WindowKind::kSingle, choose(1), Rewrite::kRekey));
    if (round % 2 == 0) measure_repeat();
    drop_if_disturbed(before, first);
  }

  /// N and 2N calls: the slope between them is free of everything a window costs once.
  void measure_pair() {
    const int n = std::max(
        1, calls_ - static_cast<int>(next("jitter") % static_cast<std::uint64_t>(calls_ / 8 + 1)));
    const Window one = run(WindowKind::kRekeyed, choose(n), Rewrite::kRekey);
    const Window two = run(WindowKind::kRekeyed, choose(2 * n), Rewrite::kRekey);
    const double slope = (two.wall_us - one.wall_us) / n - control_.per_call_us;
    samples_.slope_us.push_back(slope);
    samples_.unseen_us.push_back(slope - (two.sum_us() - one.sum_us()) / n);
    keep(one);
    keep(two);
  }

  /// The same bytes twice: the second window is the probe. A result kept by content pays only here.
  void measure_repeat() {
    std::vector<std::uint32_t> slots = choose(std::max(1, calls_ / 2));
    run(WindowKind::kRekeyed, slots, Rewrite::kFresh);
    keep(run(WindowKind::kRepeat, slots, Rewrite::kNone));
  }

  enum class Rewrite { kRekey, kFresh, kNone };

  Window run(WindowKind kind, const std::vector<std::uint32_t>& slots, Rewrite rewrite) {
    if (rewrite != Rewrite::kNone)
      for (std::uint32_t s : slots) rewrite_slot(static_cast<int>(s), rewrite);
    std::vector<std::uint64_t> before;
    for (std::uint32_t s : slots) before.push_back(wb_.last_digest(static_cast<int>(s)));
    const VerifiedWindow v = wb_.run(slots, nominal_.tolerance);
    if (v.late_write && !late_) {
      late_ = true;
      findings_.push_back({"late_write", wb_.shape().label(), v.late_evidence});
    }
    if (v.wrong_call >= 0) report_wrong(v, slots, before);
    note_precision(v);
    Window w{kind, v.times.wall_us, {}, 0};
    for (float us : v.times.call_us)
      w.call_us.push_back(std::max(0.0, static_cast<double>(us) - control_.empty_pair_us));
    w.over_us = w.wall_us - control_.fixed_us -
                static_cast<double>(slots.size()) * control_.per_call_us - w.sum_us();
    return w;
  }

  /// A shape whose symmetry has too few variants gets a new base for every slot, always.
  void rewrite_slot(int slot, Rewrite how) {
    int base = 0;
    if (how == Rewrite::kRekey && wb_.rekeys())
      base = static_cast<int>(next("base of") % static_cast<std::uint64_t>(wb_.base_count()));
    else
      wb_.draw_base(base, next("base"), nominal_);
    wb_.assign(slot, base, next("key") | 1);
  }

  [[noreturn]] void report_wrong(const VerifiedWindow& v, const std::vector<std::uint32_t>& slots,
                                 const std::vector<std::uint64_t>& before) {
    const auto call = static_cast<std::size_t>(v.wrong_call);
    const std::uint64_t now = wb_.last_digest(static_cast<int>(slots[call]));
    const bool stale = before[call] != 0 && before[call] == now;
    for (const OutputStats& o : v.slots[call]) {
      if (o.stats.ok()) continue;
      findings_.push_back(
          {stale ? "stale_output" : "timed_output_wrong", wb_.shape().label(),
           fmt::format("call {} of {} in a timed window: {} of {} elements of {} wrong{}", call + 1,
                       slots.size(), o.stats.bad, o.stats.count, o.output,
                       stale ? "; the bytes are those of an earlier call" : "")});
      throw SubmissionFault(
          o.stats.non_finite > 0 ? Verdict::kNonFinite : Verdict::kWrongAnswer,
          fmt::format(
              "{} in a timed window, call {} of {}: {} of {} elements of {} are wrong; worst at "
              "index {}: expected {:.9g}, got {:.9g}",
              wb_.shape().label(), call + 1, slots.size(), o.stats.bad, o.stats.count, o.output,
              o.stats.worst_index, o.stats.worst_expected, o.stats.worst_got));
    }
    throw JudgeError("a window was wrong but none of its outputs is");
  }

  /// Timed outputs are held against the noise floor like checked ones. Once per shape.
  void note_precision(const VerifiedWindow& v) {
    const Noise& noise = wb_.problem().noise;
    for (const auto& outputs : v.slots)
      for (const OutputStats& o : outputs) {
        const double ratio = noise_ratio(o.stats, noise);
        if (ratio <= noise.max_ratio || imprecise_) continue;
        imprecise_ = true;
        findings_.push_back({"precision_downgrade", wb_.shape().label(),
                             fmt::format("RMS error of {} in a timed window is {:.1f} times the "
                                         "noise floor of the declared precision (limit {:.1f})",
                                         o.output, ratio, noise.max_ratio)});
      }
  }

  /// `count` different aligned slots in a secret order.
  std::vector<std::uint32_t> choose(int count) {
    const int first = wb_.first_aligned_slot(), n = wb_.slot_count() - first;
    const std::uint64_t key = next("order");
    std::vector<std::uint32_t> slots;
    for (int i = 0; i < std::min(count, n); ++i)
      slots.push_back(static_cast<std::uint32_t>(first) +
                      static_cast<std::uint32_t>(permute_index(key, static_cast<std::uint64_t>(i),
                                                               static_cast<std::uint64_t>(n))));
    return slots;
  }

  void keep(Window w) { samples_.windows.push_back(std::move(w)); }

  /// Throttling, or a hypervisor that took the cores away: what was measured since is not the
  /// kernel.
  void drop_if_disturbed(const ClockSample& before, std::size_t first) {
    const ClockSample after = wb_.device().sample_clocks();
    samples_.clocks = after;
    double wall_us = 0;
    for (std::size_t i = first; i < samples_.windows.size(); ++i)
      wall_us += samples_.windows[i].wall_us;
    const bool stolen = after.stolen_us - before.stolen_us > 0.05 * wall_us + 10e3;
    if (!(after.throttled || before.throttled || stolen)) return;
    // Never drop so much that nothing is left: a machine that always throttles is measured as it
    // is.
    if (samples_.dropped > 3 * options_.max_rounds) return;
    const int dropped = static_cast<int>(samples_.windows.size() - first);
    if (first < 6) return;
    samples_.dropped += dropped;
    samples_.windows.resize(first);
  }

  bool precise() const {
    const auto scored = {WindowKind::kRekeyed, WindowKind::kFresh};
    const std::vector<double> medians = samples_.window_medians(scored);
    const Interval ci = bootstrap_median(medians, seed_);
    return ci.high - ci.low <= 2 * options_.precision * median(medians);
  }

  void report_progress(int round) const {
    progress(fmt::format(
        "bench  {}  {}  round {}  {}", wb_.problem().id, wb_.shape().label(), round + 1,
        samples_.windows.empty()
            ? ""
            : fmt::format("{:.2f} us", median(samples_.window_medians({WindowKind::kRekeyed})))));
  }

  Workbench& wb_;
  const Control& control_;
  const BenchOptions& options_;
  const std::uint64_t seed_;
  const bool cpu_;
  CaseSpec nominal_;
  int calls_ = 1;
  bool imprecise_ = false, late_ = false;
  std::uint64_t counter_ = 0;
  Samples samples_;

 public:
  std::vector<Finding> findings_;
};

}  // namespace

Control measure_control(Workbench& wb) {
  const int most = std::max(1, (wb.slot_count() - wb.first_aligned_slot()) * 2 / 5);
  std::vector<double> slopes, fixed, pairs;
  // Clocks, caches and lazy loading settle first: an idle GPU takes a while to reach its clock.
  const double begin_us = now_us();
  do wb.control_window(most);
  while (now_us() - begin_us < (is_cpu(wb.device()) ? 10e3 : 120e3));
  for (int i = 0; i < (is_cpu(wb.device()) ? 7 : 15); ++i) {
    const WindowResult one = wb.control_window(most);
    const WindowResult two = wb.control_window(2 * most);
    slopes.push_back((two.wall_us - one.wall_us) / most);
    fixed.push_back(2 * one.wall_us - two.wall_us);
    pairs.insert(pairs.end(), two.call_us.begin(), two.call_us.end());
  }
  const Interval ci = bootstrap_median(slopes, 1);
  return {std::max(0.0, median(slopes)), (ci.high - ci.low) / 2, std::max(0.0, median(fixed)),
          midmean(pairs)};
}

int wanted_slots(const Device& device, const Problem& p, const Shape& shape,
                 const Ceilings& measured) {
  if (is_cpu(device)) return 24;
  double floor_us = 0;
  const auto rate = [&](const std::string& key) {
    const auto it = measured.find(key);
    return it == measured.end() ? 0.0 : it->second;
  };
  if (rate("read") > 0) floor_us = p.floor.read_bytes.evaluate(shape) / rate("read") * 1e6;
  if (rate(p.floor.rate) > 0)
    floor_us = std::max(floor_us, p.floor.flops.evaluate(shape) / rate(p.floor.rate) * 1e6);
  constexpr double kFlushUs = 85;  // of 256 MiB, and the fingerprint
  return static_cast<int>(2.5 * std::clamp(kGpuWindowUs / (floor_us + kFlushUs), 3.0, 160.0)) + 1;
}

void bench_shape(Workbench& wb, const Control& control, const Ceilings& measured,
                 const Ceilings& datasheet, const BenchOptions& options, std::uint64_t seed,
                 BenchReport& report) {
  Bench bench(wb, control, options, derive_seed(seed, "bench/" + wb.shape().label()));
  Samples samples;
  try {
    samples = bench.measure();
  } catch (...) {
    report.findings.insert(report.findings.end(), bench.findings_.begin(), bench.findings_.end());
    throw;
  }
  const bool cpu = is_cpu(wb.device());
  ShapeBench scored = score(samples, wb.problem(), wb.shape(), control, wb.device().info(),
                            measured, datasheet, seed);
  weigh(samples, scored, cpu, seed, bench.findings_);
  report.findings.insert(report.findings.end(), bench.findings_.begin(), bench.findings_.end());
  report.shapes.push_back(std::move(scored));
}

}  // namespace assay
