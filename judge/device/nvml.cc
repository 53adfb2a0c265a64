// SPDX-License-Identifier: Apache-2.0
// Loaded when there is a driver; its header is not needed, its interface is stable.
#include "judge/device/nvml.h"

#include <dlfcn.h>

namespace assay {
namespace {

// Values of nvml.h.
constexpr int kClockSm = 1, kTemperatureGpu = 0;
struct Reason {
  unsigned long long bit;
  const char* name;
  bool throttles;  // the clock is held down by heat or by hardware; the software power cap is not
};
constexpr Reason kReasons[] = {{0x1, "idle", false},
                               {0x2, "application clocks", false},
                               {0x4, "software power cap", false},
                               {0x8, "hardware slowdown", true},
                               {0x10, "sync boost", false},
                               {0x20, "software thermal slowdown", true},
                               {0x40, "hardware thermal slowdown", true},
                               {0x80, "hardware power brake", true},
                               {0x100, "display clocks", false}};

}  // namespace

struct Nvml::Functions {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_pci)(const char*, void**) = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*temperature)(void*, int, unsigned*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*processes)(void*, unsigned*, void*) = nullptr;

  template <class F>
  void find(F& f, const char* name, const char* older = nullptr) {
    f = reinterpret_cast<F>(::dlsym(library, name));
    if (f == nullptr && older != nullptr) f = reinterpret_cast<F>(::dlsym(library, older));
  }
};

Nvml::Nvml(const std::string& pci_bus_id) : f_(std::make_unique<Functions>()) {
  f_->library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (f_->library == nullptr) return;
  f_->find(f_->init, "nvmlInit_v2");
  f_->find(f_->shutdown, "nvmlShutdown");
  f_->find(f_->by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
  f_->find(f_->clock, "nvmlDeviceGetClockInfo");
  f_->find(f_->temperature, "nvmlDeviceGetTemperature");
  f_->find(f_->power, "nvmlDeviceGetPowerUsage");
  f_->find(f_->reasons, "nvmlDeviceGetCurrentClocksEventReasons",
           "nvmlDeviceGetCurrentClocksThrottleReasons");
  f_->find(f_->driver, "nvmlSystemGetDriverVersion");
  f_->find(f_->processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (f_->init == nullptr || f_->init() != 0) return;
  if (f_->by_pci == nullptr || f_->by_pci(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
}

Nvml::~Nvml() {
  if (f_->library == nullptr) return;
  if (f_->shutdown != nullptr) f_->shutdown();
  ::dlclose(f_->library);
}

ClockSample Nvml::sample() const {
  ClockSample s;
  s.other_processes = -1;
  if (device_ == nullptr) return s;
  unsigned v = 0;
  if (f_->clock && f_->clock(device_, kClockSm, &v) == 0) s.core_mhz = v;
  if (f_->temperature && f_->temperature(device_, kTemperatureGpu, &v) == 0) s.temperature_c = v;
  if (f_->power && f_->power(device_, &v) == 0) s.power_w = v * 1e-3;
  unsigned long long bits = 0;
  if (f_->reasons && f_->reasons(device_, &bits) == 0)
    for (const Reason& r : kReasons) {
      if ((bits & r.bit) == 0) continue;
      s.reasons += (s.reasons.empty() ? "" : ", ") + std::string(r.name);
      s.throttled = s.throttled || r.throttles;
    }
  v = 0;  // asks for the count alone; "insufficient size" (7) is the expected answer
  if (f_->processes) {
    const int r = f_->processes(device_, &v, nullptr);
    if (r == 0 || r == 7) s.other_processes = v > 0 ? static_cast<int>(v) - 1 : 0;
  }
  return s;
}

std::string Nvml::driver_version() const {
  char text[96] = "";
  if (f_->library != nullptr && f_->driver != nullptr) f_->driver(text, sizeof text);
  return text;
}

}  // namespace assay
