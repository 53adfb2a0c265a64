// SPDX-License-Identifier: Apache-2.0
// W4A16 GEMM on the CPU. In prepare the 4-bit weights are only moved, into panels of kPanel
// columns; the inner loop turns 16 bytes into two vectors of weights in registers and uses them for
// up to kRows rows of x. Within a group of 128, sum of x*(q-zero)*scale = scale * (sum of x*q -
// zero * sum of x), so zero and scale are applied once per group. Panels are spread over a pool of
// threads.
#include <assay/kernel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kGroup = 128, kPanel = 16, kRows = 8;
typedef float Vec __attribute__((vector_size(64), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1)));

/// Threads that live from prepare to release. They wait for a round: a short spin, then asleep.
/// Tasks are taken by compare-and-swap on a ticket (round, next task), so a thread that wakes up
/// late finds nothing to take and nobody waits for it.
class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stop_ = true;
    ticket_ += kRound;
    ticket_.notify_all();
    for (std::thread& t : workers_) t.join();
  }

  /// Calls task(i) for i in 0 .. count-1, spread over all threads and this one; returns when all
  /// are done.
  template <class F>
  void run(int64_t count, F&& task) {
    if (workers_.empty() || count <= 1) {
      for (int64_t i = 0; i < count; ++i) task(i);
      return;
    }
    const uint64_t round = ticket_ / kRound + 1;
    ticket_ = round * kRound + kRound - 1;  // closed: a late thread must not mix two rounds
    call_ = [](void* f, uint64_t i) { (*static_cast<F*>(f))(static_cast<int64_t>(i)); };
    task_ = &task;
    count_ = static_cast<uint64_t>(count);
    done_ = 0;
    ticket_ = (round + 1) * kRound;
    ticket_.notify_all();
    take();
    for (int spin = 0; done_ != count_; ++spin)
      if (spin > 500) std::this_thread::yield();
  }

 private:
  static constexpr uint64_t kRound = uint64_t{1} << 32;

  void take() {
    for (uint64_t t = ticket_;;) {
      if (t % kRound >= count_) return;
      const auto call = call_.load();
      void* task = task_;
      if (!ticket_.compare_exchange_weak(t, t + 1)) continue;
      call(task, t % kRound);  // cannot belong to a later round: that waits for this task
      ++done_;
      t = ticket_;
    }
  }
  void work() {
    for (uint64_t seen = 0; !stop_;) {
      for (int spin = 0; spin < 2000 && ticket_ / kRound == seen; ++spin)
        if (spin % 16 == 15) std::this_thread::yield();
      for (uint64_t t; (t = ticket_) / kRound == seen;) ticket_.wait(t);
      seen = ticket_ / kRound;
      take();
    }
  }

  std::vector<std::thread> workers_;
  std::atomic<uint64_t> ticket_{0}, count_{0}, done_{0};
  std::atomic<void*> task_{nullptr};
  std::atomic<void (*)(void*, uint64_t)> call_{nullptr};
  std::atomic<bool> stop_{false};
};

float from_bf16(uint16_t b) {
  const uint32_t u = static_cast<uint32_t>(b) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

uint16_t round_to_bf16(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if (std::isnan(f)) return static_cast<uint16_t>((u >> 16) | 0x40);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

struct State {
  explicit State(int threads) : pool(threads) {}
  Pool pool;
  int64_t pairs = 0, groups = 0, n = 0, panels = 0;
  std::vector<uint8_t> q;          // [panels][pairs][kPanel]
  std::vector<float> scale, zero;  // [panels][groups][kPanel]
  std::vector<float> x;            // [rows][2 * pairs], zero-padded
  std::vector<float> x_sum;        // [rows][groups]
};

/// R rows of x against one panel.
template <int R>
void block(const State& s, int64_t panel, const float* x, const float* x_sum, uint16_t* y,
           int64_t cols) {
  const int64_t depth = 2 * s.pairs;
  const uint8_t* q = &s.q[panel * s.pairs * kPanel];
  Vec total[R] = {};
  for (int64_t g = 0; g < s.groups; ++g) {
    const int64_t end = std::min(s.pairs, (g + 1) * kGroup / 2);
    Vec even[R] = {}, odd[R] = {};
    for (int64_t p = g * kGroup / 2; p < end; ++p) {
      const Bytes packed = *reinterpret_cast<const Bytes*>(q + p * kPanel);
      const Ints wide =
          __builtin_convertvector(packed, Ints);  // in one step to float, gcc 12 goes by element
      const Vec low = __builtin_convertvector(wide & 15, Vec);
      const Vec high = __builtin_convertvector(wide >> 4, Vec);
      for (int r = 0; r < R; ++r) {
        even[r] += x[r * depth + 2 * p] * low;
        odd[r] += x[r * depth + 2 * p + 1] * high;
      }
    }
    const int64_t at = (panel * s.groups + g) * kPanel;
    const Vec scale = *reinterpret_cast<const Vec*>(&s.scale[at]);
    const Vec zero = *reinterpret_cast<const Vec*>(&s.zero[at]);
    for (int r = 0; r < R; ++r)
      total[r] += scale * (even[r] + odd[r] - x_sum[r * s.groups + g] * zero);
  }
  for (int r = 0; r < R; ++r)
    for (int64_t n = 0; n < cols; ++n) y[r * s.n + n] = round_to_bf16(total[r][n]);
}

template <int R>
void rest(int64_t rows, const State& s, int64_t panel, const float* x, const float* x_sum,
          uint16_t* y, int64_t cols) {
  if (rows == R) return block<R>(s, panel, x, x_sum, y, cols);
  if constexpr (R > 1) rest<R - 1>(rows, s, panel, x, x_sum, y, cols);
}

void decode_rows(State& s, const uint16_t* x, int64_t rows, int64_t depth) {
  s.x.assign(rows * 2 * s.pairs, 0.0f);
  s.x_sum.assign(rows * s.groups, 0.0f);
  for (int64_t m = 0; m < rows; ++m) {
    float* to = &s.x[m * 2 * s.pairs];
    for (int64_t k = 0; k < depth; ++k) to[k] = from_bf16(x[m * depth + k]);
    for (int64_t g = 0; g < s.groups; ++g) {
      float sum = 0;
      for (int64_t k = g * kGroup; k < std::min(depth, (g + 1) * kGroup); ++k) sum += to[k];
      s.x_sum[m * s.groups + g] = sum;
    }
  }
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor* constants,
                               int32_t count, void** state) {
  if (count != 3) return ASSAY_FAILED;
  auto* s = new State(problem->threads);
  s->pairs = constants[0].shape[0];
  s->n = constants[0].shape[1];
  s->groups = constants[1].shape[0];
  s->panels = (s->n + kPanel - 1) / kPanel;
  const auto* q = static_cast<const uint8_t*>(constants[0].data);
  const auto* scale = static_cast<const uint16_t*>(constants[1].data);
  const auto* zero = static_cast<const uint16_t*>(constants[2].data);
  s->q.assign(s->panels * s->pairs * kPanel, 0);
  s->scale.assign(s->panels * s->groups * kPanel, 0.0f);
  s->zero.assign(s->panels * s->groups * kPanel, 0.0f);
  for (int64_t n = 0; n < s->n; ++n) {
    const int64_t panel = n / kPanel, lane = n % kPanel;
    for (int64_t p = 0; p < s->pairs; ++p)
      s->q[(panel * s->pairs + p) * kPanel + lane] = q[p * s->n + n];
    for (int64_t g = 0; g < s->groups; ++g) {
      s->scale[(panel * s->groups + g) * kPanel + lane] = from_bf16(scale[g * s->n + n]);
      s->zero[(panel * s->groups + g) * kPanel + lane] = from_bf16(zero[g * s->n + n]);
    }
  }
  *state = s;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  auto& s = *static_cast<State*>(state);
  const int64_t rows = inputs[0].shape[0], depth = inputs[0].shape[1];
  if (depth > 2 * s.pairs || depth > s.groups * kGroup) return ASSAY_UNSUPPORTED;
  auto* y = static_cast<uint16_t*>(outputs[0].data);
  decode_rows(s, static_cast<const uint16_t*>(inputs[0].data), rows, depth);
  s.pool.run(s.panels, [&](int64_t p) {
    const int64_t cols = std::min(kPanel, s.n - p * kPanel);
    for (int64_t m = 0; m < rows; m += kRows)
      rest<kRows>(std::min(kRows, rows - m), s, p, &s.x[m * 2 * s.pairs], &s.x_sum[m * s.groups],
                  y + m * s.n + p * kPanel, cols);
  });
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
