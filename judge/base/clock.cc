// SPDX-License-Identifier: Apache-2.0
#include "judge/base/clock.h"

#include <time.h>

#include <cerrno>
#include <cstring>

#include "judge/base/fault.h"

namespace assay {

double now_us() {
  timespec t{};
  if (::clock_gettime(CLOCK_MONOTONIC_RAW, &t) != 0)
    throw JudgeError("the monotonic clock cannot be read: {}", std::strerror(errno));
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

void sleep_us(double us) {
  if (us <= 0) return;
  timespec t{};
  t.tv_sec = static_cast<time_t>(us * 1e-6);
  t.tv_nsec = static_cast<long>((us - static_cast<double>(t.tv_sec) * 1e6) * 1e3);
  ::nanosleep(&t, nullptr);
}

}  // namespace assay
