// SPDX-License-Identifier: Apache-2.0
// A sandbox that runs: one launcher (our child), the first process inside (runner/supervise.h), and
// the program below it.
#pragma once

#include <optional>
#include <string>

#include "judge/sandbox/processes.h"
#include "judge/sandbox/sandbox.h"
#include "judge/sandbox/spawn.h"

namespace assay::sandbox {

class Running final : public Sandbox {
 public:
  /// Returns once the program is locked down and about to run. JudgeError with what failed.
  Running(SandboxKind kind, const SandboxPolicy& policy, const std::vector<std::string>& argv,
          int passed_fd);
  ~Running() override;

  void freeze() override;
  void thaw() override;
  bool poll() override;
  ExitStatus finish() override;
  ExitStatus wait(std::chrono::milliseconds deadline) override;
  const std::string& output() const override { return output_; }

 private:
  void await_start();
  void read_reports();
  void read_output();
  void enforce_limits();
  void await_news(std::chrono::milliseconds at_most);
  std::vector<pid_t> program_pids() const;
  bool stop(const std::vector<pid_t>& pids) const;
  void kill_all();
  void kill_one_by_one();
  bool reap();

  SandboxKind kind_;
  SandboxPolicy policy_;
  Spawned launcher_;
  ProcessHandle launched_, first_, program_;
  std::string setup_error_;
  std::string output_;
  std::int64_t output_total_bytes_ = 0;
  std::optional<int> wait_status_;
  bool ended_ = false;   ///< the program is over, or nobody is left to say so
  bool killed_ = false;  ///< by us
  bool reaped_ = false;
  double looked_us_ = 0;  ///< when limits were last looked at
  std::vector<pid_t> frozen_;
  ExitStatus status_;
};

}  // namespace assay::sandbox
