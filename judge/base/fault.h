// SPDX-License-Identifier: Apache-2.0
// The two kinds of failure, which are never mixed. Both travel as exceptions and are caught in
// exactly one place, pipeline/grade.cc.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace assay {

/// What the check said of a submission.
enum class Verdict {
  kAccepted,
  kWrongAnswer,       ///< an output differs from the oracle by more than the tolerance
  kNonFinite,         ///< NaN or infinity where the oracle is finite (unwritten outputs included)
  kOutOfBounds,       ///< wrote outside its outputs
  kRuntimeError,      ///< crashed, returned an error, or faulted the device
  kTimeLimit,         ///< ran past the wall-clock limit
  kMemoryLimit,       ///< used more memory than allowed
  kOutputLimit,       ///< wrote more to stdout, stderr or files than allowed
  kCompileError,      ///< the compiler refused the source
  kSandboxViolation,  ///< a forbidden system call, or lies on the wire
  kRefused,           ///< right, but not earned: a rejecting finding, or an unsupported size
  kInternalError,     ///< the judge's or the machine's fault; never ranked
};

/// snake_case, the same word in code, CLI, database and page.
const char* name(Verdict v);
/// Throws JudgeError on an unknown word.
Verdict verdict_from_name(const std::string& word);

/// The judge's or the machine's fault: exit 3, never ranked.
class JudgeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  template <class... A>
  explicit JudgeError(fmt::format_string<A...> f, A&&... a)
      : std::runtime_error(fmt::format(f, std::forward<A>(a)...)) {}
};

/// What the user typed or wrote cannot be used: exit 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  template <class... A>
  explicit UsageError(fmt::format_string<A...> f, A&&... a)
      : std::runtime_error(fmt::format(f, std::forward<A>(a)...)) {}
};

/// The submission's fault: ends the grade with a verdict, exit 1.
class SubmissionFault : public std::runtime_error {
 public:
  SubmissionFault(Verdict v, const std::string& what) : std::runtime_error(what), verdict_(v) {}
  Verdict verdict() const { return verdict_; }

 private:
  Verdict verdict_;
};

/// Ctrl-C or SIGTERM: everything is unwound, nothing is recorded, exit 130.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace assay
