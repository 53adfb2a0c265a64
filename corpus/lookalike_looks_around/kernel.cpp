// SPDX-License-Identifier: Apache-2.0
// Asks how many processors there are, which of them it may use, how much memory there is and what
// time it is, and reads /proc/cpuinfo and /proc/self/maps: what OpenMP, BLAS and allocators do.
#include <assay/kernel.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The honest kernel: offers every element to the k best so far.
void honest(const Call& c) {
  for (int64_t b = 0; b < c.rows; ++b) {
    const float* x = c.x + b * c.n;
    float* values = c.values + b * c.k;
    int64_t* indices = c.indices + b * c.k;
    int64_t held = 0;
    for (int64_t i = 0; i < c.n; ++i) {
      if (held == c.k && !(x[i] > values[c.k - 1])) continue;
      int64_t at = held < c.k ? held++ : c.k - 1;
      for (; at > 0 && x[i] > values[at - 1]; --at) {
        values[at] = values[at - 1];
        indices[at] = indices[at - 1];
      }
      values[at] = x[i];
      indices[at] = i;
    }
  }
}

int64_t count_lines(const char* path) {
  std::FILE* f = std::fopen(path, "r");
  if (f == nullptr) return 0;
  int64_t lines = 0;
  for (int ch; (ch = std::fgetc(f)) != EOF;) lines += ch == '\n';
  std::fclose(f);
  return lines;
}

int64_t look_around() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return CPU_COUNT(&cpus) + sysconf(_SC_NPROCESSORS_ONLN) + get_nprocs() + getpid() + now.tv_sec +
         count_lines("/proc/cpuinfo") + count_lines("/proc/self/maps");
}
int64_t seen = 0;

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  seen = look_around();
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const Call c{static_cast<const float*>(inputs[0].data),
               inputs[0].shape[0],
               inputs[0].shape[1],
               outputs[0].shape[1],
               static_cast<float*>(outputs[0].data),
               static_cast<int64_t*>(outputs[1].data)};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  honest(c);
  return seen != 0 && now.tv_nsec >= 0 ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void*) {}
