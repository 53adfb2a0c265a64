// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "judge/bench/samples.h"
#include "judge/bench/stats.h"

namespace assay {
namespace {

bool among(WindowKind k, std::initializer_list<WindowKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), k) != kinds.end();
}

double rate(const Ceilings& c, const std::string& key) {
  const auto it = c.find(key);
  return it == c.end() ? 0 : it->second;
}

/// Bytes at the fastest memory rate or operations at `key`'s rate, whichever takes longer; 0 if
/// unknown.
double floor_us(const Problem& p, const Shape& s, double memory_rate, double operation_rate) {
  const double bytes = p.floor.read_bytes.evaluate(s) + p.floor.write_bytes.evaluate(s);
  const double operations = p.floor.flops.evaluate(s);
  double us = 0;
  if (memory_rate > 0) us = std::max(us, bytes / memory_rate * 1e6);
  if (operation_rate > 0) us = std::max(us, operations / operation_rate * 1e6);
  return us;
}

}  // namespace

double Window::sum_us() const {
  return std::accumulate(call_us.begin(), call_us.end(), 0.0);
}

std::vector<double> Samples::window_medians(std::initializer_list<WindowKind> kinds) const {
  std::vector<double> out;
  for (const Window& w : windows)
    if (among(w.kind, kinds)) out.push_back(midmean(w.call_us));
  return out;
}

std::vector<double> Samples::calls(std::initializer_list<WindowKind> kinds) const {
  std::vector<double> out;
  for (const Window& w : windows)
    if (among(w.kind, kinds)) out.insert(out.end(), w.call_us.begin(), w.call_us.end());
  return out;
}

ShapeBench score(const Samples& samples, const Problem& p, const Shape& shape,
                 const Control& control, const DeviceInfo& device, const Ceilings& measured,
                 const Ceilings& datasheet, std::uint64_t seed) {
  ShapeBench b;
  b.shape = shape.label();
  const auto scored = {WindowKind::kRekeyed, WindowKind::kFresh};
  const std::vector<double> medians = samples.window_medians(scored);
  const std::vector<double> calls = samples.calls(scored);
  b.median_us = median(medians);
  b.p5_us = quantile(calls, 0.05);
  b.p95_us = quantile(calls, 0.95);
  const Interval ci = bootstrap_median(medians, seed);
  b.ci_low_us = ci.low;
  b.ci_high_us = ci.high;
  b.wall_us = median(samples.slope_us);
  b.unseen_us = median(samples.unseen_us);
  const Interval unseen = bootstrap_median(samples.unseen_us, seed + 1);
  b.control_error_us = control.paced.error_us;
  b.unseen_low_us = unseen.low;
  b.unseen_high_us = unseen.high;
  b.single_us = median(samples.calls({WindowKind::kSingle}));
  b.fresh_us = median(samples.window_medians({WindowKind::kFresh}));
  b.rekeyed_us = median(samples.window_medians({WindowKind::kRekeyed}));
  b.repeat_us = median(samples.window_medians({WindowKind::kRepeat}));
  b.stamp_offset_us = control.stamp_offset_us;
  b.windows = static_cast<int>(samples.windows.size());
  b.calls = static_cast<int>(calls.size());
  b.dropped_windows = samples.dropped;
  b.core_mhz = samples.clocks.core_mhz;
  b.temperature_c = samples.clocks.temperature_c;
  b.power_w = samples.clocks.power_w;

  const bool cpu = device.backend == wire::Backend::kCpu;
  if (!cpu) {
    const double dirty_bytes =
        std::min(p.floor.write_bytes.evaluate(shape), static_cast<double>(device.cache_bytes));
    const double write_rate = rate(measured, "write");
    b.charged_us =
        charge_us(samples, b, write_rate > 0 ? 1.5 * dirty_bytes / write_rate * 1e6 : 0, seed);
    for (double* us : {&b.median_us, &b.p5_us, &b.p95_us, &b.ci_low_us, &b.ci_high_us})
      *us += b.charged_us;
  }

  b.published_flops = p.published_flops.evaluate(shape);
  b.published_bytes = p.published_bytes.evaluate(shape);
  const double memory =
      std::max({rate(measured, "read"), rate(measured, "copy"), rate(measured, "write")});
  double peak = cpu ? 0 : rate(datasheet, p.peak);
  if (peak == 0) peak = p.peak == "dram" ? memory : rate(measured, p.peak);
  const double work = p.regime == "memory" ? b.published_bytes : b.published_flops;
  if (peak > 0 && b.median_us > 0) b.frac = work / (b.median_us * 1e-6) / peak;
  b.floor_us = floor_us(p, shape, memory, rate(measured, p.floor.rate));
  if (b.median_us > 0) b.sol = b.floor_us / b.median_us;
  b.physics_us = floor_us(p, shape, rate(datasheet, "dram"), rate(datasheet, p.floor.rate));
  return b;
}

void summarise(BenchReport& r) {
  std::vector<double> frac, sol;
  for (const ShapeBench& s : r.shapes) {
    frac.push_back(s.frac);
    sol.push_back(s.sol);
  }
  r.frac = geometric_mean(frac);
  r.sol = geometric_mean(sol);
}

}  // namespace assay
