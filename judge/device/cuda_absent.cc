// SPDX-License-Identifier: Apache-2.0
// The CUDA back end of a build without nvcc.
#if !defined(ASSAY_HAVE_CUDA)
#include "judge/base/fault.h"
#include "judge/device/device.h"

namespace assay {

std::unique_ptr<Device> open_cuda_device(int) {
  throw JudgeError("no CUDA device: this build has no CUDA; install the CUDA toolkit and rebuild");
}

bool cuda_available(std::string* why) {
  if (why != nullptr) *why = "this build has no CUDA: install the CUDA toolkit and rebuild";
  return false;
}

}  // namespace assay
#endif
