// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "judge/device/device.h"

namespace assay {

/// What the management library knows of one GPU. Works without it: everything is then unknown.
class Nvml {
 public:
  /// `pci_bus_id` as the runtime gives it.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();

  ClockSample sample() const;
  /// "580.95.05", or "" if unknown.
  std::string driver_version() const;

 private:
  struct Functions;
  std::unique_ptr<Functions> f_;
  void* device_ = nullptr;
};

}  // namespace assay
