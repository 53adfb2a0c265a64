// SPDX-License-Identifier: Apache-2.0
#include "judge/device/thread_pool.h"

#include <pthread.h>

#include <csignal>

namespace assay {

ThreadPool::ThreadPool(int threads) {
  // Signals are the main thread's: the workers start with all of them blocked.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::run(std::int64_t chunks, const std::function<void(std::int64_t)>& work) {
  if (chunks <= 1 || threads_.empty()) {
    for (std::int64_t c = 0; c < chunks; ++c) work(c);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    next_ = 0;
    chunks_ = chunks;
    ++turn_;
  }
  wake_.notify_all();
  drain();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
  work_ = nullptr;
}

/// Takes chunks until there are none.
void ThreadPool::drain() {
  std::unique_lock lock(mutex_);
  ++busy_;
  while (next_ < chunks_) {
    const std::int64_t c = next_++;
    const auto* work = work_;
    lock.unlock();
    (*work)(c);
    lock.lock();
  }
  --busy_;
  if (busy_ == 0) done_.notify_all();
}

void ThreadPool::serve() {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ending_ || turn_ != seen; });
      if (ending_) return;
      seen = turn_;
    }
    drain();
  }
}

}  // namespace assay
