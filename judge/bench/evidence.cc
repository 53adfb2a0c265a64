// SPDX-License-Identifier: Apache-2.0
// From samples to findings. Every threshold is here, with its reason; docs/measurement.md has the
// honest spreads they were chosen against.
#include <fmt/format.h>

#include <cmath>

#include "judge/bench/samples.h"
#include "judge/bench/stats.h"

namespace assay {
namespace {

/// How far honest kernels stray. The cpu shares its cores, caches and clock with everything else
/// that runs; a GPU is the kernel's alone.
struct Margins {
  double clock_share, clock_us;     ///< unseen time that is noise, of the wall slope and at least
  double false_share, false_us;     ///< more than this cannot be an accident of queues and streams
  double memo_share, memo_us;       ///< re-keyed against fresh
  double repeat_share;              ///< repeated against new bytes
  double single_factor, single_us;  ///< one call alone against its share of a window
  double
      single_quantile;  ///< of the calls alone: where others compete for the cores, the quick ones
  double merged_sum;    ///< sum of a window's calls against their number times the median
};
constexpr Margins kGpu{0.05, 1.2, 0.35, 10, 0.12, 1.5, 0.25, 1.3, 4, 0.5, 2.5};
constexpr Margins kCpu{0.20, 20, 0.20, 20, 0.30, 10, 0.45, 4, 300, 0.1, 6};
/// The flush takes some 70 us a call: a window this much short has left it out, or most of it. On
/// the cpu nothing of the kind is in a window.
constexpr double kMissingShare = 0.05, kMissingUs = 12;

/// How much the flush of a free window varies, and code that has gone cold costs, per call.
constexpr double kFreeUs = 3;

/// Fixed cost of a window beyond that of an empty one which is noise.
constexpr double kWindowGpuUs = 120, kWindowCpuUs = 1000, kWindowCpuShare = 0.35;

void weigh_clock(const ShapeBench& b, const Margins& m, std::vector<Finding>& out) {
  const double stamps_us = b.median_us - b.charged_us;
  const double believed_us = std::max(m.false_share * b.wall_us, m.false_us);
  if (b.unseen_low_us > believed_us)
    out.push_back(
        {"clock_mismatch", b.shape,
         fmt::format("stamps say {:.2f} us a call; the judge's clock saw {:.2f} us a call more "
                     "than they explain ({:.2f} us at the least, {:.2f} us allowed)",
                     stamps_us, b.unseen_us, b.unseen_low_us, believed_us)});
  else if (b.charged_us > 0)
    out.push_back({"uncounted_time", b.shape,
                   fmt::format("stamps say {:.2f} us a call, the judge's clock {:.2f} us more, "
                               "which were added",
                               stamps_us, b.charged_us)});
}

/// A window that takes less than what comes before its calls and their stamps together.
void weigh_flush(const Samples& s, const ShapeBench& b, std::uint64_t seed,
                 std::vector<Finding>& out) {
  for (const bool paced : {true, false}) {
    std::vector<double> missing;
    for (const Window& w : s.windows)
      if (w.paced == paced && w.call_us.size() > 1)
        missing.push_back(-w.over_us / static_cast<double>(w.call_us.size()));
    if (missing.empty() ||
        bootstrap_median(missing, seed).low <= std::max(kMissingShare * b.median_us, kMissingUs))
      continue;
    out.push_back({"clock_mismatch", b.shape,
                   fmt::format("windows took {:.2f} us a call less than the flush before each call "
                               "and its stamps together: the flush was left out",
                               median(missing))});
    return;
  }
}

/// The slope over windows does not see work that takes the same time in each.
void weigh_windows(const Samples& s, const ShapeBench& b, bool cpu, const Margins& m,
                   std::uint64_t seed, std::vector<Finding>& out) {
  std::vector<double> excess, over;
  for (const Window& w : s.windows) {
    if (!w.paced) continue;
    const auto calls = static_cast<double>(w.call_us.size());
    const double believed_us = cpu ? kWindowCpuUs + kWindowCpuShare * w.sum_us()
                                   : kWindowGpuUs + calls * m.false_us + m.false_share * w.sum_us();
    excess.push_back(w.over_us - believed_us);
    over.push_back(w.over_us);
  }
  if (excess.empty() || !(bootstrap_median(excess, seed + 3).low > 0)) return;
  out.push_back({"clock_mismatch", b.shape,
                 fmt::format("a window took {:.0f} us (median) more than its stamps and an empty "
                             "window of its length explain",
                             median(over))});
}

void weigh_memo(const Samples& s, const ShapeBench& b, const Margins& m, std::uint64_t seed,
                std::vector<Finding>& out) {
  const Interval fresh = bootstrap_median(s.window_medians({WindowKind::kFresh}), seed);
  const Interval moved = bootstrap_median(s.window_medians({WindowKind::kRekeyed}), seed + 1);
  const Interval again = bootstrap_median(s.window_medians({WindowKind::kRepeat}), seed + 2);
  if (b.rekeyed_us < b.fresh_us * (1 - m.memo_share) - m.memo_us && moved.high < fresh.low)
    out.push_back({"memo_by_invariant", b.shape,
                   fmt::format("{:.2f} us a call on re-keyed data, {:.2f} us on data never seen",
                               b.rekeyed_us, b.fresh_us)});
  const double honest = std::min(b.rekeyed_us, b.fresh_us);
  if (b.repeat_us < honest * (1 - m.repeat_share) - m.memo_us &&
      again.high < std::min(moved.low, fresh.low))
    out.push_back({"content_memo", b.shape,
                   fmt::format("{:.2f} us a call when no byte had changed, {:.2f} us on new bytes",
                               b.repeat_us, honest)});
}

/// The first call of a window finds nothing done, neither by a call before it nor beside the flush
/// between calls: whether others follow or not.
double alone_us(const Samples& s, bool cpu, const Margins& m) {
  const double single_us = quantile(s.calls({WindowKind::kSingle}), m.single_quantile);
  if (cpu) return single_us;  // the first of several is also the one that finds cold caches
  std::vector<double> first;
  for (const Window& w : s.windows)
    if (w.paced && w.call_us.size() > 1) first.push_back(w.call_us.front());
  return std::max(single_us, median(first));
}

void weigh_merging(const Samples& s, const ShapeBench& b, bool cpu, const Margins& m,
                   std::vector<Finding>& out) {
  std::vector<double> ratios;
  for (const Window& w : s.windows)
    if (w.kind != WindowKind::kSingle && w.call_us.size() >= 4)
      ratios.push_back(w.sum_us() /
                       (static_cast<double>(w.call_us.size()) * std::max(median(w.call_us), 1e-3)));
  if (!ratios.empty() && median(ratios) > m.merged_sum) {
    out.push_back(
        {"merged_calls", b.shape,
         fmt::format("the calls of a window add up to {:.1f} times their number times the "
                     "median: a few of them do the work of all",
                     median(ratios))});
    return;
  }
  const double us = alone_us(s, cpu, m);
  if (us > m.single_factor * b.median_us + m.single_us)
    out.push_back(
        {"merged_calls", b.shape,
         fmt::format("{:.2f} us for a call alone, {:.2f} us a call in a window", us, b.median_us)});
}

void weigh_floor(const ShapeBench& b, std::vector<Finding>& out) {
  if (b.physics_us > 0 && b.median_us < b.physics_us)
    out.push_back({"faster_than_physics", b.shape,
                   fmt::format("{:.3f} us a call; the datasheet allows {:.3f} us", b.median_us,
                               b.physics_us)});
  else if (b.sol > 1.03)  // the ceilings were measured to about 1 %, the kernel too
    out.push_back(
        {"faster_than_measured", b.shape,
         fmt::format("{:.3f} us a call; the measured ceilings allow {:.3f} us: probe again",
                     b.median_us, b.floor_us)});
}

}  // namespace

double charge_us(const Samples& s, const ShapeBench& b, double writeback_us, std::uint64_t seed) {
  const Margins& m = kGpu;
  const double noise_us = std::max(m.clock_share * b.wall_us, m.clock_us) + b.control_error_us;
  double charge = b.unseen_low_us > noise_us ? b.unseen_us : 0;
  for (const WindowKind kind : {WindowKind::kRekeyed, WindowKind::kRepeat}) {
    std::vector<double> over, excess;
    const double kind_noise_us =
        noise_us + (kind == WindowKind::kRepeat ? kFreeUs + writeback_us : 0);
    for (const Window& w : s.windows) {
      if (w.kind != kind || w.call_us.size() < 2) continue;
      const auto calls = static_cast<double>(w.call_us.size());
      over.push_back(w.over_us / calls);
      excess.push_back((w.over_us - kWindowGpuUs) / calls - kind_noise_us);
    }
    if (!over.empty() && bootstrap_median(excess, seed + 5).low > 0)
      charge = std::max(charge, median(over));
  }
  return charge;
}

void weigh(const Samples& s, const ShapeBench& b, bool cpu, std::uint64_t seed,
           std::vector<Finding>& findings) {
  const Margins& m = cpu ? kCpu : kGpu;
  weigh_clock(b, m, findings);
  if (!cpu) weigh_flush(s, b, seed + 4, findings);
  weigh_windows(s, b, cpu, m, seed, findings);
  weigh_memo(s, b, m, seed, findings);
  weigh_merging(s, b, cpu, m, findings);
  weigh_floor(b, findings);
  if (b.ci_high_us - b.ci_low_us > 0.1 * b.median_us)
    findings.push_back({"unstable_time", b.shape,
                        fmt::format("median {:.2f} us, 95 % interval {:.2f} to {:.2f} us",
                                    b.median_us, b.ci_low_us, b.ci_high_us)});
}

}  // namespace assay
