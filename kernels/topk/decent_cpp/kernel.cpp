// SPDX-License-Identifier: Apache-2.0
// Top-k on the CPU. A row is cut into pieces, one heap of the k best per piece; blocks of 64
// elements in which none beats the heap's least are skipped by a compare that vectorises. The heaps
// of a row are merged and drained in descending order. Pieces, then rows, are spread over a pool of
// threads.
#include <assay/kernel.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kLeastPiece = 8192;  // elements; below, cutting costs more than it gains

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

struct Entry {
  float value;
  int64_t index;
};

/// A heap whose root is the least of the k best.
class Best {
 public:
  void reset(Entry* storage, int64_t k) {
    heap_ = storage;
    k_ = k;
    held_ = 0;
  }
  bool full() const { return held_ == k_; }
  float least() const { return heap_[0].value; }
  void offer(Entry e) {
    if (held_ < k_) {
      int64_t at = held_++;
      for (; at > 0 && e.value < heap_[(at - 1) / 2].value; at = (at - 1) / 2)
        heap_[at] = heap_[(at - 1) / 2];
      heap_[at] = e;
    } else if (e.value > heap_[0].value) {
      sink(e);
    }
  }
  /// Takes the least out.
  Entry pop() {
    const Entry root = heap_[0];
    const Entry last = heap_[--held_];
    if (held_ > 0) sink(last);
    return root;
  }
  int64_t size() const { return held_; }
  const Entry& operator[](int64_t i) const { return heap_[i]; }

 private:
  void sink(Entry e) {
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < held_; at = child) {
      if (child + 1 < held_ && heap_[child + 1].value < heap_[child].value) ++child;
      if (!(heap_[child].value < e.value)) break;
      heap_[at] = heap_[child];
    }
    heap_[at] = e;
  }
  Entry* heap_ = nullptr;
  int64_t k_ = 0, held_ = 0;
};

/// Offers x[begin, end) to `best`.
void scan(const float* x, int64_t begin, int64_t end, Best& best) {
  int64_t i = begin;
  for (; i < end && !best.full(); ++i) best.offer({x[i], i});
  for (; i + kBlock <= end; i += kBlock) {
    const float least = best.least();
    int any = 0;
    for (int64_t j = 0; j < kBlock; ++j) any |= x[i + j] > least;
    if (any == 0) continue;
    for (int64_t j = i; j < i + kBlock; ++j)
      if (x[j] > best.least()) best.offer({x[j], j});
  }
  for (; i < end; ++i) best.offer({x[i], i});
}

struct State {
  explicit State(int n) : threads(n), pool(n) {}
  int threads;
  Pool pool;
  std::vector<Entry> storage;  // [rows][pieces][k]
  std::vector<Best> best;      // [rows][pieces]
};

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor*, int32_t,
                               void** state) {
  *state = new State(std::max(1, problem->threads));
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void*) {
  auto& s = *static_cast<State*>(state);
  const int64_t rows = inputs[0].shape[0], n = inputs[0].shape[1], k = outputs[0].shape[1];
  const auto* x = static_cast<const float*>(inputs[0].data);
  auto* values = static_cast<float*>(outputs[0].data);
  auto* indices = static_cast<int64_t*>(outputs[1].data);
  int64_t pieces = rows >= s.threads ? 1 : (s.threads + rows - 1) / rows;
  pieces = std::clamp<int64_t>(n / std::max(kLeastPiece, k), 1, pieces);
  s.storage.resize(rows * pieces * k);
  s.best.resize(rows * pieces);

  // One task per thread or piece, whichever is fewer: a task takes a run of neighbouring pieces.
  const int64_t total = rows * pieces, tasks = std::min<int64_t>(total, s.threads);
  const int64_t per_task = n * rows < 4 * kLeastPiece ? total : (total + tasks - 1) / tasks;
  s.pool.run((total + per_task - 1) / per_task, [&](int64_t task) {
    for (int64_t p = task * per_task; p < std::min(total, (task + 1) * per_task); ++p) {
      const int64_t row = p / pieces, piece = p % pieces;
      s.best[p].reset(&s.storage[p * k], k);
      scan(x + row * n, n * piece / pieces, n * (piece + 1) / pieces, s.best[p]);
    }
  });
  for (int64_t row = 0; row < rows; ++row) {
    Best& best = s.best[row * pieces];
    for (int64_t p = 1; p < pieces; ++p) {
      const Best& other = s.best[row * pieces + p];
      for (int64_t i = 0; i < other.size(); ++i) best.offer(other[i]);
    }
    for (int64_t i = k - 1; i >= 0; --i) {
      const Entry e = best.pop();
      values[row * k + i] = e.value;
      indices[row * k + i] = e.index;
    }
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void* state) {
  delete static_cast<State*>(state);
}
