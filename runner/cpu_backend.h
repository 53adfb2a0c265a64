// SPDX-License-Identifier: Apache-2.0
// The cpu device of the runner: shared memory, the monotonic clock, calls on the calling thread.
#pragma once

#include <map>

#include "runner/backend.h"

namespace assay::runner {

class CpuBackend final : public RunnerBackend {
 public:
  ~CpuBackend() override;

  void open(const wire::Hello& hello) override;
  void* map(int fd, std::size_t bytes, bool writable) override;
  void unmap(void* data) override;
  void* stream() override { return nullptr; }
  void synchronize() override {}
  WindowOutcome run_window(const wire::RunWindow& window, SlotCaller& caller) override;

 private:
  std::size_t page_bytes_ = 4096;
  std::map<void*, std::size_t> mappings_;
};

}  // namespace assay::runner
