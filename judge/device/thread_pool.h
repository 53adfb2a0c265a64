// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay {

/// A fixed set of threads for the judge's own arithmetic. Idle threads sleep; none spins, because a
/// submission is being timed on the same cores.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls work(c) for c = 0 .. chunks-1, on all threads and the caller's; returns when all are
  /// done. Not to be called from inside `work`. An exception of `work` ends the program.
  void run(std::int64_t chunks, const std::function<void(std::int64_t)>& work);

 private:
  void serve();
  void drain();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::int64_t)>* work_ = nullptr;
  std::int64_t next_ = 0, chunks_ = 0, busy_ = 0;
  std::uint64_t turn_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay
