// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/admit.h"

#include <gtest/gtest.h>

#include "judge/base/text.h"

namespace assay {
namespace {

AdmitReport admit_shape(const Problem& p, int shape) {
  const auto device = open_cpu_device();
  GradeOptions o;
  o.seed = 3;
  o.shapes = {shape};
  o.bench_options.budget_s = 0.2;
  return admit(*device, p, device->probe(true), o);
}

const FakeRow& row(const AdmitReport& r, const std::string& name) {
  for (const FakeRow& f : r.fakes)
    if (f.name == name) return f;
  throw std::out_of_range(name);
}

TEST(Admit, ASoundProblemHasRoomOnBothSidesOfItsGates) {
  const AdmitReport r = admit_shape(find_problem("w4a16_gemm"), 1);
  EXPECT_TRUE(r.objections.empty()) << join(r.objections);
  EXPECT_LT(r.honest_over(), 0.6);
  EXPECT_GT(r.fake_over(), 1.5);
  EXPECT_EQ(row(r, "zeros").failed, row(r, "zeros").cases);
}

TEST(Admit, AToleranceThatZerosPassIsObjectedTo) {
  Problem p = find_problem("w4a16_gemm");
  p.tolerance.atol = 1e4f;
  p.noise.max_ratio = 1e9;
  const AdmitReport r = admit_shape(p, 1);
  EXPECT_EQ(row(r, "zeros").passed, 1);  // the nominal case; the stressed ones have their own
  EXPECT_GE(row(r, "lower_precision").passed, 1);
  ASSERT_FALSE(r.objections.empty());
  EXPECT_NE(r.objections[0].find("zeros passes 1 of "), std::string::npos) << r.objections[0];
}

TEST(Admit, ThePublishedToleranceIsTriedBesideOurs) {
  Problem p = find_problem("w4a16_gemm");
  p.published_tolerance = Tolerance{1e4f, 0};
  const AdmitReport r = admit_shape(p, 1);
  EXPECT_TRUE(r.objections.empty()) << join(r.objections);
  EXPECT_EQ(row(r, "mean").passes_published, 1);
}

TEST(Admit, AConstantIsRightWhereAllElementsAreEqual) {
  const AdmitReport r = admit_shape(find_problem("topk"), 0);
  EXPECT_TRUE(r.objections.empty()) << join(r.objections);
  EXPECT_GT(row(r, "mean").right, 0);
  EXPECT_GT(row(r, "mean").failed, row(r, "mean").right);
}

}  // namespace
}  // namespace assay
