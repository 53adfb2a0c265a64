// SPDX-License-Identifier: Apache-2.0
// Includes itself twice, twelve levels deep, and has the compiler warn every time.
#if __INCLUDE_LEVEL__ < 12
#include __FILE__
#include __FILE__
#endif
#warning "all work and no play makes jack a dull boy"
#if __INCLUDE_LEVEL__ == 0
#include <assay/kernel.h>

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void**) {
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor*, int32_t, const assay_tensor*, int32_t,
                           void*) {
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
#endif
