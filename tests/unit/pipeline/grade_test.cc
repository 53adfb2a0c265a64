// SPDX-License-Identifier: Apache-2.0
// End to end on the cpu: source in, record out.
#include "judge/pipeline/grade.h"

#include <gtest/gtest.h>

#include <set>

#include "judge/base/paths.h"
#include "judge/pipeline/demo.h"

namespace assay {
namespace {

class Grade : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    device_ = open_cpu_device().release();
    ceilings_ = new Ceilings(device_->probe(true));
  }
  static void TearDownTestSuite() {
    delete ceilings_;
    delete device_;
  }

  static Record run(const Problem& p, const std::string& source, bool bench = false,
                    std::uint64_t seed = 7) {
    GradeOptions o;
    o.bench = bench;
    o.seed = seed;
    o.shapes = {0};
    o.bench_options.budget_s = 0.3;
    return grade(*device_, p, make_submission("test", Language::kCpp, {{"kernel.cpp", source}}),
                 *ceilings_, o);
  }
  static std::string shipped(const std::string& problem) {
    return read_file(home_dir() / "kernels" / problem / "naive_cpp" / "kernel.cpp");
  }

  static Device* device_;
  static Ceilings* ceilings_;
};
Device* Grade::device_ = nullptr;
Ceilings* Grade::ceilings_ = nullptr;

TEST_F(Grade, HonestIsAcceptedWithTimesAndScores) {
  const Record r = run(find_problem("topk"), shipped("topk"), true);
  ASSERT_EQ(r.verdict, Verdict::kAccepted) << r.message;
  EXPECT_EQ(r.audit_verdict, "clean");
  ASSERT_EQ(r.bench.shapes.size(), 1u);
  const ShapeBench& b = r.bench.shapes[0];
  EXPECT_GT(b.median_us, 0);
  EXPECT_GT(b.wall_us, 0);
  EXPECT_GT(b.fresh_us, 0);
  EXPECT_GT(b.floor_us, 0);
  EXPECT_GT(b.sol, 0);
  // 3 seeds x (nominal, 2 stress scales, 6 structural cases) x 2 outputs.
  EXPECT_EQ(r.check.cases.size(), 3u * 9u * 2u);
}

TEST_F(Grade, AFailureNamesShapeSeedCaseIndexAndValues) {
  std::string source = shipped("fp8_gemm");
  source += "\n#include <cstring>\n";
  const std::string entry = "assay_run(";
  // The same kernel under another name, then one element spoilt.
  const std::size_t at = source.find(entry);
  ASSERT_NE(at, std::string::npos);
  source.replace(at, entry.size(), "honest_run(");
  source += R"(
ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t n, const assay_tensor* outputs,
                           int32_t m, void* stream) {
  const int code = honest_run(state, inputs, n, outputs, m, stream);
  static_cast<uint16_t*>(outputs[0].data)[5] ^= 0x8000;  // the sign
  return code;
})";
  const Record r = run(find_problem("fp8_gemm"), source);
  EXPECT_EQ(r.verdict, Verdict::kWrongAnswer) << r.message;
  for (const char* part : {"M=256", "seed 0", "case nominal", "index 5", "expected", "got"})
    EXPECT_NE(r.message.find(part), std::string::npos) << part << " in: " << r.message;
}

TEST_F(Grade, CompileErrorsShowTheCompilersLines) {
  const Record r = run(find_problem("topk"), "int assay_prepare( {");
  EXPECT_EQ(r.verdict, Verdict::kCompileError);
  EXPECT_NE(r.message.find("kernel.cpp:1"), std::string::npos) << r.message;
}

TEST_F(Grade, ReplayRepeatsBitForBitAndNoticesADifference) {
  const Problem p = find_problem("w4a16_gemm");
  const Record first = run(p, shipped("w4a16_gemm"));
  ASSERT_EQ(first.verdict, Verdict::kAccepted) << first.message;
  const ReplayResult same = replay(*device_, p, first, SandboxKind::kAuto);
  EXPECT_TRUE(same.identical) << same.difference;
  EXPECT_EQ(same.again.check.digest(), first.check.digest());

  Record other = first;
  other.seed ^= 1;
  EXPECT_FALSE(replay(*device_, p, other, SandboxKind::kAuto).identical);
  Record old = first;
  old.problem_version[0] = old.problem_version[0] == '0' ? '1' : '0';
  EXPECT_THROW(replay(*device_, p, old, SandboxKind::kAuto), UsageError);
}

TEST_F(Grade, EveryProblemShipsANaiveSubmissionForBothDevices) {
  for (Language l : {Language::kCpp, Language::kCuda}) {
    std::set<std::string> naive;
    for (const Shipped& s : shipped_submissions(l))
      if (s.name.rfind("naive_", 0) == 0) naive.insert(s.problem);
    for (const Problem& p : load_problems()) EXPECT_TRUE(naive.contains(p.id)) << p.id << name(l);
  }
}

}  // namespace
}  // namespace assay
