// SPDX-License-Identifier: Apache-2.0
// FP8 GEMM on the CPU. Weights are decoded in prepare into panels of kPanel columns that the inner
// loop reads straight through; x is decoded row by row through a table; a block of kRows x kPanel
// sums stays in vector registers. Panels are spread over a pool of threads.
#include <assay/kernel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kRows = 6;  // 6 x 2 vectors of sums and 2 of weights fit the registers
constexpr int64_t kPanel = 32;
typedef float Vec
    __attribute__((vector_size(64), aligned(4)));  // the compiler splits it where it must

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

float decode_e4m3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  float v;
  if ((bits & 0x7f) == 0x7f)
    v = std::numeric_limits<float>::quiet_NaN();
  else if (exponent == 0)
    v = std::ldexp(static_cast<float>(mantissa), -9);
  else
    v = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -v : v;
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
  int64_t n = 0, k = 0, panels = 0;
  std::vector<float> weight;  // [panels][K][kPanel], zeros past N
  std::vector<float> scale;   // [panels * kPanel]
  std::vector<float> x;       // decoded activations of the call, grown when needed
  float decoded[256];
};

/// Sums of R rows of x against one panel, scaled, rounded and stored (columns past `cols` are not).
template <int R>
void block(const float* x, int64_t depth, const float* w, const float* scale, uint16_t* y,
           int64_t stride, int64_t cols) {
  Vec lo[R] = {}, hi[R] = {};
  for (int64_t k = 0; k < depth; ++k, w += kPanel) {
    const Vec w0 = *reinterpret_cast<const Vec*>(w), w1 = *reinterpret_cast<const Vec*>(w + 16);
    for (int r = 0; r < R; ++r) {
      const float a = x[r * depth + k];
      lo[r] += a * w0;
      hi[r] += a * w1;
    }
  }
  for (int r = 0; r < R; ++r)
    for (int64_t n = 0; n < cols; ++n)
      y[r * stride + n] = round_to_bf16((n < 16 ? lo[r][n] : hi[r][n - 16]) * scale[n]);
}

template <int R>
void rest(int64_t rows, const float* x, int64_t depth, const float* w, const float* scale,
          uint16_t* y, int64_t stride, int64_t cols) {
  if (rows == R) return block<R>(x, depth, w, scale, y, stride, cols);
  if constexpr (R > 1) rest<R - 1>(rows, x, depth, w, scale, y, stride, cols);
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor* constants,
                               int32_t count, void** state) {
  if (count != 2) return ASSAY_FAILED;
  auto* s = new State(problem->threads);
  s->n = constants[0].shape[0];
  s->k = constants[0].shape[1];
  s->panels = (s->n + kPanel - 1) / kPanel;
  for (int b = 0; b < 256; ++b) s->decoded[b] = decode_e4m3(static_cast<uint8_t>(b));
  const auto* w = static_cast<const uint8_t*>(constants[0].data);
  const auto* scale = static_cast<const float*>(constants[1].data);
  s->scale.assign(s->panels * kPanel, 0.0f);
  std::memcpy(s->scale.data(), scale, s->n * sizeof(float));
  s->weight.assign(s->panels * kPanel * s->k, 0.0f);
  for (int64_t n = 0; n < s->n; ++n)
    for (int64_t k = 0; k < s->k; ++k)
      s->weight[(n / kPanel * s->k + k) * kPanel + n % kPanel] = s->decoded[w[n * s->k + k]];
  *state = s;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  auto& s = *static_cast<State*>(state);
  const int64_t rows = inputs[0].shape[0];
  const auto* x = static_cast<const uint8_t*>(inputs[0].data);
  auto* y = static_cast<uint16_t*>(outputs[0].data);
  if (s.x.size() < static_cast<size_t>(rows * s.k)) s.x.resize(rows * s.k);
  for (int64_t i = 0; i < rows * s.k; ++i) s.x[i] = s.decoded[x[i]];
  s.pool.run(s.panels, [&](int64_t p) {
    const int64_t cols = std::min(kPanel, s.n - p * kPanel);
    const float* w = &s.weight[p * s.k * kPanel];
    for (int64_t m = 0; m < rows; m += kRows)
      rest<kRows>(std::min(kRows, rows - m), &s.x[m * s.k], s.k, w, &s.scale[p * kPanel],
                  y + m * s.n + p * kPanel, s.n, cols);
  });
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
