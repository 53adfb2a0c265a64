// SPDX-License-Identifier: Apache-2.0
// What the runner's request loop (serve.cc) needs of a device. Two implementations: cpu_backend.h
// and cuda_backend.h. The loop over the calls of a window lives here, because how calls are
// stamped, isolated from each other and fingerprinted is the device's business.
//
// Everything throws BackendError on failure. The request loop reports it as Stage::kSetup, or as
// Stage::kRun when it comes out of run_window(); the judge knows whose fault that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "wire/protocol.h"

namespace assay::runner {

/// One line, at most wire::kMaxText bytes: what failed and the device's own word for it.
class BackendError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An output tensor of a slot, in this process's (host or device) addresses. Any alignment.
struct OutputRange {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

/// The submission, as a window sees it. Implemented by serve.cc.
class SlotCaller {
 public:
  virtual ~SlotCaller() = default;

  /// The outputs of `slot`, in order; valid during the window. Their fingerprint is wire::digest_*
  /// of each, combined by digest_chain from 0 in this order.
  virtual std::span<const OutputRange> outputs(std::uint32_t slot) const = 0;

  /// Makes ready the arguments of the next call, outside its stamps. Also done in control windows.
  virtual void arrange(std::uint32_t slot) = 0;

  /// assay_run for `slot`, which was the last one arranged, on RunnerBackend::stream(). Returns its
  /// code; exceptions do not come through. Not called in control windows.
  virtual int call(std::uint32_t slot) = 0;
};

/// What a window brought back. If `code` is not 0, assay_run returned it for the call at position
/// `failed_call` (the window stops there) and `done` is empty.
struct WindowOutcome {
  int code = 0;
  std::size_t failed_call = 0;
  wire::WindowDone done;
};

class RunnerBackend {
 public:
  virtual ~RunnerBackend() = default;

  /// Opens the device of `hello` (version and backend have been checked). Once, before anything
  /// else.
  virtual void open(const wire::Hello& hello) = 0;

  /// Maps `bytes` (a positive multiple of the device's granularity) of the memory behind `fd`, for
  /// reading only unless `writable`. The descriptor is the caller's, who closes it afterwards: the
  /// mapping must not depend on it. What lies directly before and after the mapping is not mapped.
  virtual void* map(int fd, std::size_t bytes, bool writable) = 0;

  /// Undoes map(). The device is idle.
  virtual void unmap(void* data) = 0;

  /// What assay_run gets as its `stream`: null on the cpu.
  virtual void* stream() = 0;

  /// Waits for everything on the device, side streams included.
  virtual void synchronize() = 0;

  /// One window: for each slot in order
  ///   caller.arrange(slot); [cuda: empty the L2, keep the pace]; stamp; caller.call(slot); stamp;
  ///   fingerprint
  /// then the device is synchronised and every call's outputs are fingerprinted again. The stamps
  /// and the first fingerprint are ordered like the call (cuda: all on stream()). In a control
  /// window a kernel (cpu: a loop) that spins for wire::kControlCall_ns stands for caller.call().
  /// At most wire::kMaxCalls slots, each bound; one slot may come more than once.
  virtual WindowOutcome run_window(const wire::RunWindow& window, SlotCaller& caller) = 0;
};

std::unique_ptr<RunnerBackend> make_cpu_backend();
#if defined(ASSAY_HAVE_CUDA)
std::unique_ptr<RunnerBackend> make_cuda_backend();  // cuda_backend.cu
#endif

}  // namespace assay::runner
