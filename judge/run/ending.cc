// SPDX-License-Identifier: Apache-2.0
#include "judge/run/ending.h"

#include <csignal>

namespace assay {

SubmissionFault fault_of(const ExitStatus& end, const std::string& where) {
  if (end.memory_exceeded)
    return {Verdict::kMemoryLimit, "used more memory than allowed in " + where};
  if (end.tasks_exceeded)
    return {Verdict::kSandboxViolation,
            "started more threads or processes than allowed in " + where};
  if (end.output_exceeded) return {Verdict::kOutputLimit, "printed more than allowed in " + where};
  if (end.forbidden_call)
    return {Verdict::kSandboxViolation, "made a forbidden system call in " + where};
  if (!end.exited && end.code == SIGXFSZ)
    return {Verdict::kOutputLimit, "wrote a larger file than allowed in " + where};
  return {Verdict::kRuntimeError, end.describe() + " in " + where};
}

}  // namespace assay
