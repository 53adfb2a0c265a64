// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <cmath>

#include "judge/base/clock.h"
#include "judge/base/fault.h"
#include "judge/base/log.h"
#include "judge/base/paths.h"
#include "judge/bench/bench.h"
#include "judge/build/compiler.h"
#include "judge/cli/cli.h"
#include "judge/cli/print.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// One thing that works here or does not. `needed`: without it nothing can be graded on a cpu.
struct Examined {
  std::string name;
  bool works = false;
  bool needed = false;
  std::string detail, remedy;
};

/// Runs `look`; its text is the detail, its exception the reason.
template <class F>
Examined examine(const std::string& what, bool needed, const std::string& remedy, F&& look) {
  Examined f{what, true, needed, "", ""};
  try {
    f.detail = look();
  } catch (const std::exception& e) {
    f.works = false;
    f.detail = e.what();
    f.remedy = remedy;
  }
  return f;
}

std::string library(const char* name_in_loader) {
  void* handle = ::dlopen(name_in_loader, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw JudgeError("{} not found", name_in_loader);
  ::dlclose(handle);
  return name_in_loader;
}

std::string toolkit_file(const std::string& path) {
  std::vector<fs::path> roots = {"/usr/local/cuda", "/usr"};
  if (const char* home = std::getenv("CUDA_HOME")) roots.insert(roots.begin(), home);
  for (const fs::path& root : roots)
    if (fs::exists(root / path)) return (root / path).string();
  throw JudgeError("{} not found", path);
}

/// The judge's clock, against itself: how fine it is and that it does not stand still.
std::string clocks() {
  double finest = 1e9;
  for (int i = 0; i < 1000; ++i) {
    const double a = now_us();
    double b = now_us();
    while (b == a) b = now_us();
    finest = std::min(finest, b - a);
  }
  const double begin = now_us();
  sleep_us(10'000);
  const double slept_us = now_us() - begin;
  if (slept_us < 9'900 || slept_us > 200'000)
    throw JudgeError("10 ms of sleep took {:.0f} us", slept_us);
  return fmt::format("monotonic raw, step {:.0f} ns", finest * 1e3);
}

std::string writable(const fs::path& folder) {
  fs::create_directories(folder);
  if (::access(folder.c_str(), W_OK) != 0)
    throw JudgeError("{} cannot be written", folder.string());
  return folder.string();
}

/// What the kernel says, which is there even where CUDA does not start.
std::string driver_text() {
  std::error_code error;
  const fs::path file = "/proc/driver/nvidia/version";
  if (!fs::exists(file, error)) throw JudgeError("no NVIDIA driver is loaded");
  const std::string text = read_file(file);
  return text.substr(0, text.find('\n'));
}

std::string gpu_text() {
  const auto d = open_cuda_device(0);
  if (!d->healthy()) throw JudgeError("{} does not compute correctly", d->info().name);
  const bool known = !datasheet_peaks(d->info()).empty();
  return fmt::format(
      "{}, driver {}, runtime {}{}", d->info().name, d->info().driver, d->info().runtime,
      known ? "" : " (not in data/hardware.yaml: frac is relative to measured rates)");
}

std::string gpu_clock_text() {
  const ClockSample s = open_cuda_device(0)->sample_clocks();
  if (s.core_mhz == 0) throw JudgeError("libnvidia-ml tells nothing");
  return fmt::format("{:.0f} MHz, {:.0f} C, {:.0f} W{}", s.core_mhz, s.temperature_c, s.power_w,
                     s.throttled ? ", THROTTLED: " + s.reasons : "");
}

std::vector<Examined> examine_all() {
  std::vector<Examined> all;
  bool any_sandbox = false;
  for (const SandboxProbe& p : probe_sandbox()) {
    any_sandbox = any_sandbox || (p.works && (p.name == "bubblewrap" || p.name == "namespaces"));
    all.push_back({p.name, p.works, p.name == "seccomp", p.detail, p.remedy});
  }
  all.push_back(
      {"sandbox", any_sandbox, true,
       any_sandbox ? name(resolve_sandbox(SandboxKind::kAuto)) : "no way to make namespaces",
       any_sandbox ? "" : "allow user namespaces, or grade trusted code with --sandbox none"});
  all.push_back(
      examine("runner", true, "build all of Assay", [] { return runner_path().string(); }));
  all.push_back(examine("g++", true, "apt install g++",
                        [] { return find_compiler(Language::kCpp, 0).version; }));
  all.push_back(examine("OpenBLAS", true, "apt install libopenblas0-pthread",
                        [] { return library("libopenblas.so.0"); }));
  all.push_back(examine("clock", true, "use a machine with a working monotonic clock", clocks));
  all.push_back(examine("records", true, "set ASSAY_STATE", [] {
    const fs::path file = default_database();
    const Store store(file);  // says why it cannot be written
    return file.string();
  }));
  all.push_back(examine("cache", true, "set ASSAY_CACHE", [] { return writable(cache_dir()); }));
  all.push_back(examine("driver", false, "install the NVIDIA driver", driver_text));
  all.push_back(examine("GPU", false, "grade with --device cpu meanwhile", gpu_text));
  all.push_back(examine("GPU clocks", false, "they come with a working GPU and its driver's NVML",
                        gpu_clock_text));
  all.push_back(examine("nvcc", false, "install the CUDA toolkit or set CUDA_HOME",
                        [] { return find_compiler(Language::kCuda, 0).version; }));
  all.push_back(examine("nvdisasm", false, "install cuda-nvdisasm",
                        [] { return toolkit_file("bin/nvdisasm"); }));
  all.push_back(examine("CUPTI", false, "install cuda-cupti", [] {
    try {
      return toolkit_file("lib64/libcupti.so");
    } catch (const JudgeError&) {
      return toolkit_file("extras/CUPTI/lib64/libcupti.so");
    }
  }));
  return all;
}

}  // namespace

void add_doctor(Parser& parser, Context& context) {
  Command c = parser.add(context, "doctor", "What works here, and what to do about what does not");
  c.run([&context] {
    const std::vector<Examined> all = examine_all();
    for (const Examined& f : all)
      if (f.needed && !f.works) context.exit_code = kFault;
    if (context.json) {
      Json j = Json::array();
      for (const Examined& f : all)
        j.push_back({{"name", f.name},
                     {"works", f.works},
                     {"needed", f.needed},
                     {"detail", f.detail},
                     {"remedy", f.remedy}});
      return print_json(j);
    }
    std::vector<std::vector<std::string>> rows = {{"what", "works", "detail", "remedy"}};
    for (const Examined& f : all)
      rows.push_back({f.name, f.works ? "yes" : f.needed ? "NO" : "no", f.detail, f.remedy});
    print_table(rows);
  });
}

}  // namespace assay::cli
