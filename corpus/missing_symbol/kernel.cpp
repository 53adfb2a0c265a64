// SPDX-License-Identifier: Apache-2.0
// Defines only two of the three functions.
#include <assay/kernel.h>

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
