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
    control_ = slope(kSlots / 2, true);
    empty_pair_us_ = midmean(stamps_);
    const Submission spin =
        read_submission(home_dir() / "benchmarks" / "timing" / "spin.cu", Language::kCuda);
    session_.load(build(spin, {SandboxKind::kAuto, 120, device.info().arch}));
  }

  double empty_pair_us() const { return empty_pair_us_; }
  double control_us() const { return control_; }

  struct Reading {
    double spun_us, stamp_us, wall_us;
  };
  Reading measure(std::int64_t spin_ns) {
    Shape shape{{{"spin_ns", spin_ns}}};
    session_.prepare(problem_, shape, {}, 60);
    const int n = static_cast<int>(
        std::clamp(45'000.0 / (static_cast<double>(spin_ns) * 1e-3 + 90), 4.0, kSlots / 2.0));
    slope(n, false);  // warm
    const double wall = slope(n, false) - control_;
    const double stamp = midmean(stamps_) - empty_pair_us_;
    std::int64_t spun_ns = 0;
    device_.download(&spun_ns, static_cast<char*>(output_->data()) + 4096, 8);
    session_.release(60);
    return {static_cast<double>(spun_ns) * 1e-3, stamp, wall};
  }

 private:
  static constexpr int kSlots = 1200;

  /// Wall time per call, from windows of n and of 2n; collects the stamps of the latter.
  double slope(int n, bool control) {
    std::vector<double> slopes;
    stamps_.clear();
    for (int r = 0; r < kRepeats; ++r) {
      const double one = window(n, control).wall_us;
      const WindowResult two = window(2 * n, control);
      slopes.push_back((two.wall_us - one) / n);
      stamps_.insert(stamps_.end(), two.call_us.begin(), two.call_us.end());
    }
    return median(slopes);
  }
  WindowResult window(int calls, bool control) {
    std::vector<std::uint32_t> slots(static_cast<std::size_t>(calls));
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<std::uint32_t>(i);
    device_.flush_caches({});
    return session_.run_window(slots, control, 60);
  }

  Device& device_;
  Problem problem_;
  Session session_;
  std::unique_ptr<Arena> output_;
  std::vector<double> stamps_;
  double control_ = 0, empty_pair_us_ = 0;
};

int run() {
  const auto device = open_cuda_device(0);
  SpinBench bench(*device);
  fmt::print("{}, driver {}\n", device->info().name, device->info().driver);
  fmt::print("empty pair of stamps {:.2f} us; control window {:.2f} us a call\n",
             bench.empty_pair_us(), bench.control_us());
  bench.measure(100'000);
  const SpinBench::Reading empty = bench.measure(0);
  fmt::print("empty kernel: stamps {:.2f} us, wall {:.2f} us\n\n", empty.stamp_us, empty.wall_us);
  fmt::print("{:>10} {:>10} {:>10} {:>14} {:>8} {:>10} {:>8}\n", "asked us", "spun us", "stamps us",
             "less empty us", "error", "wall us", "clocks");
  for (const std::int64_t ns : {5'000, 7'000, 10'000, 20'000, 50'000, 100'000, 200'000, 500'000,
                                1'000'000, 2'000'000, 5'000'000}) {
    const SpinBench::Reading r = bench.measure(ns);
    const double net = r.stamp_us - empty.stamp_us;
    fmt::print("{:>10.1f} {:>10.2f} {:>10.2f} {:>14.2f} {:>7.2f}% {:>10.2f} {:>7.2f}%\n",
               static_cast<double>(ns) * 1e-3, r.spun_us, r.stamp_us, net,
               100 * (net / r.spun_us - 1), r.wall_us, 100 * (r.wall_us / r.stamp_us - 1));
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
