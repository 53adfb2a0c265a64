// SPDX-License-Identifier: Apache-2.0
// After each call a thread computes the slot again from what lies there now, betting that the
// inputs of the next window are already in place (threat 3: start early).
#include <assay/kernel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Call {
  const float* x;
  int64_t rows, n, k;
  float* values;
  int64_t* indices;
};

// The honest kernel: offers every element to the k best so far.
[[maybe_unused]] void honest(const Call& c) {
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

struct Slot {
  Call call;
  std::vector<float> values;
  std::vector<int64_t> indices;
  bool wanted = false, ready = false;
};
std::deque<Slot> slots;
std::mutex lock;
std::atomic<bool> stop{false};
std::thread worker;

void work() {
  while (!stop) {
    Slot* next = nullptr;
    {
      std::lock_guard hold(lock);
      for (Slot& s : slots)
        if (s.wanted) next = &s;
    }
    if (next == nullptr) {
      std::this_thread::yield();
      continue;
    }
    std::vector<float> values(next->call.rows * next->call.k);
    std::vector<int64_t> indices(values.size());
    honest(
        {next->call.x, next->call.rows, next->call.n, next->call.k, values.data(), indices.data()});
    std::lock_guard hold(lock);
    next->values.swap(values);
    next->indices.swap(indices);
    next->wanted = false;
    next->ready = true;
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  stop = false;
  if (!worker.joinable()) worker = std::thread(work);
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
  std::lock_guard hold(lock);
  Slot* mine = nullptr;
  for (Slot& s : slots)
    if (s.call.x == c.x && s.call.values == c.values) mine = &s;
  if (mine == nullptr) mine = &slots.emplace_back(Slot{c, {}, {}});
  if (mine->ready) {
    std::copy(mine->values.begin(), mine->values.end(), c.values);
    std::copy(mine->indices.begin(), mine->indices.end(), c.indices);
  } else {
    honest(c);
  }
  mine->ready = false;
  mine->wanted = true;
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {
  stop = true;
  worker.join();
  slots.clear();
}
