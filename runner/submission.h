// SPDX-License-Identifier: Apache-2.0
// The submission inside the runner: the shared object, its state, and every call across the ABI.
// From load() on nothing in this process can be relied upon; the care taken here keeps honest
// submissions' failures readable, it does not contain dishonest ones.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "assay/kernel.h"
#include "wire/protocol.h"

namespace assay::runner {

/// A request that could not be done; becomes its reply.
class RequestFailed : public std::exception {
 public:
  /// Any text: it is cut to what the wire takes.
  RequestFailed(wire::Stage stage, std::int32_t code, std::string text);
  const wire::Ack& ack() const { return ack_; }
  const char* what() const noexcept override { return ack_.text.c_str(); }

 private:
  wire::Ack ack_;
};

class Submission {
 public:
  /// RequestFailed(kLoad) if the object cannot be loaded or lacks a function.
  void load(const std::string& path);
  bool loaded() const { return run_ != nullptr; }

  /// RequestFailed(kPrepare) with assay_prepare's code, or ASSAY_FAILED and the text of its
  /// exception.
  void prepare(const wire::Prepare& request, std::vector<assay_tensor> constants, int threads);
  bool prepared() const { return prepared_; }
  /// Does nothing if not prepared. RequestFailed(kRun) if assay_release throws.
  void release();

  /// One call. The arrays are the callee's to scribble on. An exception becomes ASSAY_FAILED with
  /// exception_text() set.
  int run(std::span<assay_tensor> inputs, std::span<assay_tensor> outputs, void* stream);
  const std::string& exception_text() const { return exception_text_; }

 private:
  decltype(&assay_prepare) prepare_ = nullptr;
  decltype(&assay_run) run_ = nullptr;
  decltype(&assay_release) release_ = nullptr;

  // What assay_prepare was given stays alive until assay_release: honest code keeps pointers to it.
  wire::Prepare problem_;
  std::vector<assay_axis> axes_;
  assay_problem abi_problem_{};
  std::vector<assay_tensor> constants_;
  void* state_ = nullptr;
  bool prepared_ = false;
  std::string exception_text_;
};

}  // namespace assay::runner
