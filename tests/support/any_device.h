// SPDX-License-Identifier: Apache-2.0
// Tests that run on every device of this machine: the cpu, and a GPU where there is one.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "judge/device/device.h"

namespace assay {

class AnyDevice : public testing::TestWithParam<std::string> {
 protected:
  static Device& device() {
    static std::map<std::string, std::unique_ptr<Device>> open;
    auto& d = open[GetParam()];
    if (!d) d = GetParam() == "cpu" ? open_cpu_device() : open_cuda_device(0);
    return *d;
  }
};

inline std::vector<std::string> devices_here() {
  std::vector<std::string> names = {"cpu"};
  if (cuda_available()) names.emplace_back("cuda");
  return names;
}

#define ASSAY_ON_EVERY_DEVICE(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::assay::devices_here()), \
                           [](const auto& param_info) { return param_info.param; })

/// Memory of a device seen from the host.
template <class T>
class DeviceArray {
 public:
  DeviceArray(Device& d, std::size_t n)
      : device_(d), n_(n), memory_(d.allocate(static_cast<std::int64_t>(n * sizeof(T) + 16))) {}
  DeviceArray(Device& d, const std::vector<T>& v) : DeviceArray(d, v.size()) { put(v); }

  T* data() const { return static_cast<T*>(memory_->data()); }
  void put(const std::vector<T>& v) {
    device_.upload(data(), v.data(), static_cast<std::int64_t>(v.size() * sizeof(T)));
    device_.synchronize();
  }
  std::vector<T> get() const {
    std::vector<T> v(n_);
    device_.synchronize();
    device_.download(v.data(), data(), static_cast<std::int64_t>(n_ * sizeof(T)));
    return v;
  }
  Tensor tensor(DType t) const {
    Tensor out;
    out.data = data();
    out.dtype = t;
    out.rank = 1;
    out.shape[0] = static_cast<std::int64_t>(n_);
    return out;
  }

 private:
  Device& device_;
  std::size_t n_;
  std::unique_ptr<Buffer> memory_;
};

}  // namespace assay
