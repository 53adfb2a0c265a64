// SPDX-License-Identifier: Apache-2.0
// The judge's end of the wire: one sandboxed runner process and what it may see.
//
// Every reply is hostile. A reply that is malformed, late, of the wrong kind or of the wrong length
// ends the session with SubmissionFault (after load) or JudgeError (before it: only our own code
// has run).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "judge/build/build.h"
#include "judge/device/device.h"
#include "judge/problem/problem.h"
#include "judge/sandbox/sandbox.h"
#include "wire/protocol.h"

namespace assay {

struct SessionOptions {
  SandboxKind sandbox = SandboxKind::kAuto;
  int threads = 1;
  std::int64_t memory_bytes = std::int64_t{4} << 30;
};

/// What one window brought back. wall_us is the judge's own clock, from before the runner was let
/// go to the arrival of the reply; the rest are the runner's claims.
struct WindowResult {
  double wall_us = 0;
  std::vector<float> call_us;
  std::vector<std::uint64_t> returned;
  std::vector<std::uint64_t> settled;
};

class Session {
 public:
  /// Starts the runner for `device`. JudgeError when it cannot.
  Session(Device& device, const SessionOptions&);
  ~Session();

  /// Shares an arena. Its number on the wire is returned.
  std::uint32_t map(const Arena&);
  void bind(std::uint32_t slot, const std::vector<wire::TensorRef>& inputs,
            const std::vector<wire::TensorRef>& outputs);
  void load(const Artifact&);
  void prepare(const Problem&, const Shape&, const std::vector<wire::TensorRef>& constants,
               double deadline_s);
  void release(double deadline_s);

  /// Runs one window on a frozen runner: clock, thaw, request, wait, clock, freeze. The runner is
  /// frozen again when it returns, and stays so.
  WindowResult run_window(const wire::RunWindow&, double deadline_s);

  /// Stops every process of the runner (idempotent). All judge-side rewriting happens while frozen.
  void freeze();
  void thaw();

  /// What the submission printed.
  const std::string& output() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay
