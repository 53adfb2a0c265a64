// SPDX-License-Identifier: Apache-2.0
#include "top_of_row.h"

void top_of_row(const float* x, int64_t n, int64_t k, float* values, int64_t* indices) {
  int64_t held = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (held == k && !(x[i] > values[k - 1])) continue;
    int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && x[i] > values[at - 1]; --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = x[i];
    indices[at] = i;
  }
}
