// SPDX-License-Identifier: Apache-2.0
// How true are the bench's clocks? Kernels of known duration through a real session: what the
// stamps say, and what the judge's own clock says. Prints the tables of docs/measurement.md.
#include <fmt/format.h>

#include <cstdio>

#include "judge/base/paths.h"
#include "judge/bench/stats.h"
#include "judge/build/build.h"
#include "judge/run/session.h"

namespace assay {
namespace {

constexpr int kRepeats = 15;
constexpr std::uint32_t kPace_ns = 100'000;

/// Slots that all share one small output.
class SpinBench {
 public:
  explicit SpinBench(Device& device)
      : device_(device),
        session_(device, {}),
        output_(device.allocate_arena(device.arena_granularity(), true)) {
    problem_.id = "spin";
    const std::uint32_t arena = session_.map(*output_);
    for (std::uint32_t s = 0; s < kSlots; ++s)
      session_.bind(s, {}, {{arena, 4096, DType::kI64, {1}}});
    session_.freeze();
    for (int i = 0; i < 5; ++i) window(kSlots, true);  // until the clocks have come up
    control_us_ = wall_us(kSlots / 2, true) - kControl_us;
    stamp_offset_us_ = midmean(stamps_) - kControl_us;
    const Submission spin =
        read_submission(home_dir() / "benchmarks" / "timing" / "spin.cu", Language::kCuda);
    session_.load(build(spin, {SandboxKind::kAuto, 120, device.info().arch}));
  }

  double stamp_offset_us() const { return stamp_offset_us_; }
  double control_us() const { return control_us_; }

  struct Reading {
    double stamp_us, wall_us;
  };
  Reading measure(std::int64_t spin_ns) {
    Shape shape{{{"spin_ns", spin_ns}}};
    session_.prepare(problem_, shape, {}, 60);
    const int n = static_cast<int>(
        std::clamp(45'000.0 / (static_cast<double>(spin_ns + kPace_ns) * 1e-3), 4.0, kSlots / 2.0));
    wall_us(n, false);  // warm
    const double wall = wall_us(n, false) - control_us_;
    session_.release(60);
    return {midmean(stamps_) - stamp_offset_us_, wall};
  }

 private:
  static constexpr int kSlots = 1000;
  static constexpr double kControl_us = wire::kControlCall_ns * 1e-3;

  /// Wall time per call, from windows of one, n and 2n calls; collects the stamps of the longest.
  double wall_us(int n, bool control) {
    std::vector<double> slopes;
    stamps_.clear();
    for (int r = 0; r < kRepeats; ++r) {
      const WindowResult one = window(1, control), some = window(n, control),
                         most = window(2 * n, control);
      slopes.push_back(slope({1, static_cast<double>(n), static_cast<double>(2 * n)},
                             {one.wall_us, some.wall_us, most.wall_us}));
      stamps_.insert(stamps_.end(), most.call_us.begin(), most.call_us.end());
    }
    return median(slopes);
  }
  WindowResult window(int calls, bool control) {
    std::vector<std::uint32_t> slots(static_cast<std::size_t>(calls));
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::uint32_t>(i);
    device_.flush_caches({});
    return session_.run_window({slots, control, kPace_ns}, 60);
  }

  Device& device_;
  Problem problem_;
  Session session_;
  std::unique_ptr<Arena> output_;
  std::vector<double> stamps_;
  double control_us_ = 0, stamp_offset_us_ = 0;
};

int run() {
  const auto device = open_cuda_device(0);
  SpinBench bench(*device);
  fmt::print("{}, driver {}\n", device->info().name, device->info().driver);
  bench.measure(100'000);  // the module is loaded, the clocks are up
  fmt::print("a pair of stamps reads {:.2f} us too much; a control call costs {:.2f} us\n",
             bench.stamp_offset_us(), bench.control_us());
  const SpinBench::Reading empty = bench.measure(0);
  fmt::print("kernel of no length: stamps {:.2f} us, wall {:.2f} us\n\n", empty.stamp_us,
             empty.wall_us);
  fmt::print("{:>10} {:>10} {:>8} {:>10} {:>8}\n", "us", "stamps us", "error", "wall us", "clocks");
  // Multiples of the timer's step, 32 ns.
  for (const std::int64_t ns : {5'024, 7'008, 10'016, 20'000, 50'016, 100'000, 200'000, 500'000,
                                1'000'000, 2'000'000, 5'000'000}) {
    const SpinBench::Reading r = bench.measure(ns);
    const double us = static_cast<double>(ns) * 1e-3;
    fmt::print("{:>10.2f} {:>10.2f} {:>7.2f}% {:>10.2f} {:>7.2f}%\n", us, r.stamp_us,
               100 * (r.stamp_us / us - 1), r.wall_us, 100 * (r.wall_us / r.stamp_us - 1));
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main() {
  try {
    return assay::run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "timing: %s\n", e.what());
    return 3;
  }
}
