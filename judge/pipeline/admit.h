// SPDX-License-Identifier: Apache-2.0
// May a problem enter a deck? Only if its gates, the tolerance and the noise ratio, stand between
// honest kernels and everything that is not one.
#pragma once

#include <string>
#include <vector>

#include "judge/device/device.h"
#include "judge/pipeline/grade.h"
#include "judge/problem/problem.h"

namespace assay {

/// How one kind of fake fared. "over": by how many times it exceeded the nearer of the two gates,
/// at its weakest; more than 1 is a failure.
struct FakeRow {
  std::string name, what;
  int cases = 0;   ///< shape x case x output
  int failed = 0;  ///< as it must be
  int right = 0;   ///< structural cases whose answer it happens to be (one constant, say), and data
                   ///< that is no worse than it was (too small for a mantissa to matter)
  int passed = 0;  ///< nominal or stressed ones that let it through: the problem is unsound
  int passes_published = 0;  ///< nominal cases that the published tolerance alone would let through
  double over = 0;           ///< smallest over the cases it is not right in
  std::string weakest;       ///< where that was
};

/// How one honest submission fared. over < 1 leaves room.
struct HonestRow {
  std::string name;
  bool peer = false;  ///< a vendor's library behind the same interface, benchmarks/peers/
  Verdict verdict = Verdict::kAccepted;
  std::string message;
  double over = 0;
  std::string tightest;
  double sol = 0;  ///< highest of its shapes
};

struct AdmitReport {
  std::string problem_id;
  std::vector<FakeRow> fakes;
  std::vector<HonestRow> honest;
  std::vector<std::string> objections;  ///< empty: admitted
  double honest_over() const;           ///< largest
  double fake_over() const;             ///< smallest
};

/// Tries every fake on every case of every chosen shape (one seed), and grades the shipped
/// submissions and the library peer. UsageError if the problem ships no naive submission for the
/// device; JudgeError if that one does not even get an answer out.
AdmitReport admit(Device&, const Problem&, const Ceilings&, const GradeOptions&);

}  // namespace assay
