// SPDX-License-Identifier: Apache-2.0
// What a submission could hand in instead of the answer. A problem is sound if its check tells
// every one of them from an honest kernel; admit.h tries that.
#pragma once

#include <span>
#include <string_view>

#include "judge/device/device.h"
#include "judge/problem/ops.h"

namespace assay {

/// One output to be faked. `out` holds the honest bytes and may be overwritten.
struct FakeArgs {
  Device& device;
  const Tensor& out;
  const Tensor& previous;  ///< the honest answer to another draw of the same case
  Tensors inputs;
  float mean = 0, rms = 0;  ///< of the honest output
};

/// An answer made without the work.
struct Fake {
  std::string_view name;
  std::string_view what;
  void (*make)(const FakeArgs&);
};
std::span<const Fake> fakes();

/// An answer honestly computed from worse data: what a cheaper pipeline would come to.
struct Degradation {
  std::string_view name;
  std::string_view what;
  void (*apply)(Device&, const Tensor&);  ///< to every floating-point tensor the submission reads
};
std::span<const Degradation> degradations();

bool is_floating(DType);

}  // namespace assay
