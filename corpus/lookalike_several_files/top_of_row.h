// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

void top_of_row(const float* x, int64_t n, int64_t k, float* values, int64_t* indices);
