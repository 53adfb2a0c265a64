// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/formula.h"

#include <gtest/gtest.h>

#include "judge/base/fault.h"

namespace assay {
namespace {

const std::vector<std::string> kAxes = {"M", "N", "K"};
const Shape kShape{{{"M", 6}, {"N", 4}, {"K", 10}}};

double value(const std::string& text) {
  return Formula(text, kAxes).evaluate(kShape);
}
std::string error(const std::string& text) {
  try {
    Formula(text, kAxes);
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}

TEST(Formula, Arithmetic) {
  EXPECT_EQ(value("2*M*N*K"), 480);
  EXPECT_EQ(value("M - N - 1"), 1);
  EXPECT_EQ(value("K / 4 / 5"), 0.5);
  EXPECT_EQ(value("-(M + 1) * 2"), -14);
  EXPECT_EQ(value("ceil(K/4) + floor(K/4)"), 5);
  EXPECT_EQ(value("min(M, N) + max(M, K)"), 14);
  EXPECT_EQ(value("1.5e2"), 150);
}
TEST(Formula, ErrorsNameTheColumn) {
  EXPECT_NE(error("2*Q").find("column 3: unknown axis 'Q'"), std::string::npos) << error("2*Q");
  EXPECT_NE(error("2*").find("ends too early"), std::string::npos);
  EXPECT_NE(error("(M").find("expected ')'"), std::string::npos);
  EXPECT_NE(error("M N").find("unexpected 'N'"), std::string::npos);
  EXPECT_NE(error("sqrt(M)").find("unknown function 'sqrt'"), std::string::npos);
  EXPECT_NE(error(""), "");
  EXPECT_NE(error(std::string(1000, '(')).find("nested too deeply"), std::string::npos);
}
TEST(Formula, DivisionByZeroIsNotANumberToGoOnWith) {
  EXPECT_THROW(value("M/(N-4)"), JudgeError);
}

}  // namespace
}  // namespace assay
