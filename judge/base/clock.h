// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay {

/// CLOCK_MONOTONIC_RAW, microseconds. The judge's clock; throws JudgeError if it cannot be read.
double now_us();
/// Sleeps at least this long, or until a signal.
void sleep_us(double us);

}  // namespace assay
