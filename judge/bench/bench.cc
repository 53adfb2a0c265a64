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

/// A flush takes a tenth more on some calls, and evicting an L2 full of outputs as much again as
/// writing it.
constexpr double kPaceFactor = 1.1, kPaceUs = 16;

/// How well the difference of the two clocks has to be known before a bench stops.
constexpr double kUnseenUs = 0.3;

/// A window shorter than this is mostly the two ends of it.
constexpr double kCpuWindowUs = 8e3, kGpuWindowUs = 20e3;

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
    const double each_us = median(w.call_us) + control_.paced.per_call_us;
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
      keep(run(WindowKind::kSingle, choose(1), Rewrite::kRekey));
    } else {
      measure_slope(round % 2 == 0);
    }
    drop_if_disturbed(before, first);
  }

  /// One, N and 2N calls: the slope of the judge's clock over the number of calls is free of
  /// everything a window costs once. With `repeat`, the same bytes once more: a result kept by
  /// content pays only there.
  void measure_slope(bool repeat) {
    const int n = std::max(
        1, calls_ - static_cast<int>(next("jitter") % static_cast<std::uint64_t>(calls_ / 8 + 1)));
    std::vector<std::uint32_t> slots;
    std::vector<Window> windows = {
        run(WindowKind::kSingle, choose(1), Rewrite::kRekey),
        run(WindowKind::kRekeyed, choose(n), Rewrite::kRekey),
        run(WindowKind::kRekeyed, slots = choose(2 * n), Rewrite::kRekey)};
    std::vector<double> calls, wall, unseen;
    for (const Window& w : windows) {
      const auto count = static_cast<double>(w.call_us.size());
      calls.push_back(count);
      wall.push_back(w.wall_us - count * control_.paced.per_call_us);
      unseen.push_back(w.over_us);
    }
    samples_.slope_us.push_back(slope(calls, wall));
    samples_.unseen_us.push_back(slope(calls, unseen));
    std::move(windows.begin(), windows.end(), std::back_inserter(samples_.windows));
    if (!repeat) return;
    slots.resize(static_cast<std::size_t>((n + 1) / 2));
    keep(run(WindowKind::kRepeat, slots, Rewrite::kNone));
  }

  enum class Rewrite { kRekey, kFresh, kNone };

  Window run(WindowKind kind, const std::vector<std::uint32_t>& slots, Rewrite rewrite) {
    if (rewrite != Rewrite::kNone)
      for (std::uint32_t s : slots) rewrite_slot(static_cast<int>(s), rewrite);
    std::vector<std::uint64_t> before;
    for (std::uint32_t s : slots) before.push_back(wb_.last_digest(static_cast<int>(s)));
    const bool paced = kind != WindowKind::kRepeat;
    const WindowCost& cost = paced ? control_.paced : control_.free;
    const VerifiedWindow v = wb_.run(slots, nominal_.tolerance, paced ? control_.pace_ns : 0);
    if (v.late_write && !late_) {
      late_ = true;
      findings_.push_back({"late_write", wb_.shape().label(), v.late_evidence});
    }
    if (v.wrong_call >= 0) report_wrong(v, slots, before);
    note_precision(v);
    Window w{kind, paced, v.times.wall_us, {}, 0};
    for (float us : v.times.call_us)
      w.call_us.push_back(std::max(0.0, static_cast<double>(us) - control_.stamp_offset_us));
    w.over_us = w.wall_us - cost.fixed_us - static_cast<double>(slots.size()) * cost.per_call_us -
                w.sum_us();
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
    const double median_us = median(medians);
    const Interval ci = bootstrap_median(medians, seed_);
    if (ci.high - ci.low > 2 * options_.precision * median_us) return false;
    if (cpu_) return true;  // whose clocks are held against each other by a wide margin
    const Interval unseen = bootstrap_median(samples_.unseen_us, seed_ + 1);
    return unseen.high - unseen.low <= std::max(2 * options_.precision * median_us, kUnseenUs);
  }

  void report_progress(int round) const {
    const std::vector<double> medians =
        samples_.window_medians({WindowKind::kRekeyed, WindowKind::kFresh});
    progress(fmt::format("bench  {}  {}  round {}  {}", wb_.problem().id, wb_.shape().label(),
                         round + 1,
                         medians.empty() ? "" : fmt::format("{:.2f} us", median(medians))));
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

namespace {

/// From control windows of one, n and 2n calls; adds the stamps of the longest to `pairs_us`.
WindowCost window_cost(Workbench& wb, int n, std::uint32_t pace_ns, int times,
                       std::vector<double>& pairs_us) {
  std::vector<double> slopes, fixed;
  for (int i = 0; i < times; ++i) {
    std::vector<double> calls, wall;
    for (const int count : {1, n, 2 * n}) {
      const WindowResult w = wb.control_window(count, pace_ns);
      calls.push_back(count);
      wall.push_back(w.wall_us - count * wire::kControlCall_ns * 1e-3);
      if (count == 2 * n) pairs_us.insert(pairs_us.end(), w.call_us.begin(), w.call_us.end());
    }
    slopes.push_back(slope(calls, wall));
    fixed.push_back(wall.front() - slopes.back());
  }
  const Interval ci = bootstrap_median(slopes, 1);
  return {std::max(0.0, median(slopes)), (ci.high - ci.low) / 2, std::max(0.0, median(fixed))};
}

}  // namespace

Control measure_control(Workbench& wb) {
  const bool cpu = is_cpu(wb.device());
  const int most = std::max(1, (wb.slot_count() - wb.first_aligned_slot()) * 2 / 5);
  // Clocks, caches and lazy loading settle first: an idle GPU takes a while to reach its clock.
  const double begin_us = now_us();
  do wb.control_window(most, 0);
  while (now_us() - begin_us < (cpu ? 10e3 : 120e3));
  Control c;
  std::vector<double> pairs_us;
  c.free = window_cost(wb, most, 0, 7, pairs_us);
  if (cpu) {
    c.paced = c.free;
  } else {
    pairs_us.clear();
    c.pace_ns = static_cast<std::uint32_t>((c.free.per_call_us * kPaceFactor + kPaceUs) * 1e3);
    c.paced = window_cost(wb, most, c.pace_ns, 15, pairs_us);
  }
  c.stamp_offset_us = midmean(pairs_us) - wire::kControlCall_ns * 1e-3;
  return c;
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
  constexpr double kFlushUs = 100;  // of 256 MiB, and the fingerprint
  return static_cast<int>(2.5 * std::clamp(kGpuWindowUs / (floor_us + kFlushUs), 3.0, 200.0)) + 1;
}

void bench_shape(Workbench& wb, const Control& control, const Ceilings& measured,
                 const Ceilings& datasheet, const BenchOptions& options, std::uint64_t seed,
                 BenchReport& report) {
  const bool cpu = is_cpu(wb.device());
  const auto add = [&](const std::vector<Finding>& f) {
    report.findings.insert(report.findings.end(), f.begin(), f.end());
  };
  // A cpu is everybody's, and whoever disturbs a bench makes honest times look like a cheat's:
  // there two looks of three have to agree before times alone reject, and the last look is the
  // result.
  for (int look = 1, against = 0;; ++look) {
    Bench bench(wb, control, options,
                derive_seed(seed, "bench/" + wb.shape().label(), static_cast<std::uint64_t>(look)));
    Samples samples;
    try {
      samples = bench.measure();
    } catch (...) {
      add(bench.findings_);
      throw;
    }
    add(bench.findings_);  // of bytes, not of times
    ShapeBench scored = score(samples, wb.problem(), wb.shape(), control, wb.device().info(),
                              measured, datasheet, seed);
    std::vector<Finding> of_times;
    weigh(samples, scored, cpu, seed, of_times);
    against += worst(of_times) == Severity::kReject;
    const bool decided =
        !cpu || against != 1 || look == 3 || worst(report.findings) == Severity::kReject;
    if (!decided) continue;
    add(of_times);
    report.shapes.push_back(std::move(scored));
    return;
  }
}

}  // namespace assay
