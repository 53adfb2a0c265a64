// SPDX-License-Identifier: Apache-2.0
#include "judge/problem/problem.h"

#include <gtest/gtest.h>

#include <fstream>

#include "judge/base/fault.h"
#include "judge/base/paths.h"

namespace assay {
namespace {

const std::string kGood = R"yaml(id: tiny
title: Tiny
deck: test
summary: y = x
axes: [n]
regime: memory
peak: dram
inputs:
  x: {dtype: f32, shape: [n], draw: "normal(1)"
}
outputs:
  y: {dtype: f32, shape: [n]}
expected:
  y: {dtype: f32, shape: [n]}
shapes:
  cpu:
    - [16]
tolerance: {atol: 0.1, rtol: 0}
published: {flops: n, bytes: 8*n}
floor: {flops: n, rate: fp32, read_bytes: 4*n, write_bytes: 4*n}
noise: {accumulate_relative: 0, max_ratio: 3}
)yaml";

/// Loads `yaml` as problems/tiny; the error, or "" if it is accepted.
std::string error_of(const std::string& yaml) {
  const TempDir root;
  const auto folder = root.path() / "tiny";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "problem.yaml") << yaml;
  try {
    load_problem(folder);
    return "";
  } catch (const UsageError& e) {
    return e.what();
  }
}
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Problem, AGoodOneLoads) {
  EXPECT_EQ(error_of(kGood), "");
}

struct Bad {
  const char *from, *to, *line_and_message;
};
TEST(Problem, EveryMistakeIsNamedWithFileAndLine) {
  const Bad table[] = {
      {"title: Tiny", "titel: Tiny", "lacks the key 'title'"},
      {"noise:", "extra: 1\nnoise:", ":21: unknown key 'extra'"},
      {"id: tiny", "id: other", ":1: id 'other' differs"},
      {"dtype: f32, shape: [n], draw", "dtype: f31, shape: [n], draw", ":9: unknown dtype 'f31'"},
      {"\"normal(1)\"", "\"normla(1)\"",
       ":9: unknown distribution 'normla', did you mean 'normal'"},
      {"\"normal(1)\"", "\"uniform(4, 4)\"", ":9: 'uniform(4, 4)': the range is empty"},
      {"bytes: 8*n", "bytes: 8*m", ":19: formula '8*m', column 3: unknown axis 'm'"},
      {"- [16]", "- [16, 2]", ":17: a shape is a list of 1 sizes"},
      {"- [16]", "- [0]", ":17: n must be a positive whole number"},
      {"- [16]", "- [16]\n    - [16]", ":18: shape n=16 is given twice"},
      {"    - [16]", "    []", ":17: shapes of cpu must be a list that is not empty"},
      {"atol: 0.1", "atol: lots", ":18: 'atol' must be a number"},
      {"atol: 0.1", "atol: -1", ":18: a tolerance cannot be negative"},
      {"shape: [n], draw", "shape: [n/3], draw", "extent n/3 of 'x' is 5.33"},
      {"regime: memory", "regime: both", ":6: regime is compute or memory"},
      {"axes: [n]", "axes: n", ":5: 'axes' must be a list"},
      {"deck: test", "deck: test\ndeck: again", ":4: key 'deck' is given twice"},
      {"rate: fp32, ", "rate: fp32, rat: 1, ", "unknown key 'rat' in floor, did you mean 'rate'"},
      {"title: Tiny", "title: [", "problem.yaml:"},
  };
  for (const Bad& b : table) {
    const std::string e = error_of(with(b.from, b.to));
    EXPECT_NE(e.find(b.line_and_message), std::string::npos) << b.to << "\n  gave: " << e;
    EXPECT_NE(e.find("problem.yaml:"), std::string::npos) << e;
    EXPECT_EQ(e.find('\n'), std::string::npos) << e;
  }
}
TEST(Problem, AnInoutIsReadAndWritten) {
  const TempDir root;
  const auto folder = root.path() / "tiny";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "problem.yaml") << with(
      "expected:", "inouts:\n  s: {dtype: f64, shape: [n], draw: \"normal(1)\"}\nexpected:");
  const Problem p = load_problem(folder);
  ASSERT_EQ(p.read().size(), 2u);
  ASSERT_EQ(p.written().size(), 2u);
  EXPECT_EQ(p.read()[1].name, "s");
  EXPECT_EQ(p.written()[1].name, "s");
  EXPECT_EQ(p.outputs.size(), 1u);
}
TEST(Problem, AnInoutHasANameOfItsOwn) {
  for (const char* taken : {"x", "y"})
    EXPECT_NE(error_of(with("expected:", std::string("inouts:\n  ") + taken +
                                             ": {dtype: f32, shape: [n], draw: \"normal(1)\"}\n"
                                             "expected:"))
                  .find(fmt::format("'{}' is an inout and an input or an output", taken)),
              std::string::npos)
        << taken;
}
TEST(Problem, StressMustNameATensor) {
  EXPECT_NE(error_of(kGood + "stress:\n  - {name: s, scale: {z: 2}, atol: 0, rtol: 0}\n")
                .find(":23: no input or constant is called 'z'"),
            std::string::npos);
}

TEST(Problem, TheVersionFollowsEveryByteOfTheFolder) {
  const TempDir root;
  const auto folder = root.path() / "tiny";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "problem.yaml") << kGood;
  const std::string first = load_problem(folder).version;
  EXPECT_EQ(load_problem(folder).version, first);
  std::ofstream(folder / "ops.h") << "// one";
  const std::string second = load_problem(folder).version;
  std::ofstream(folder / "ops.h") << "// two";
  EXPECT_NE(second, first);
  EXPECT_NE(load_problem(folder).version, second);
}

TEST(Problem, EveryShippedProblemLoadsAndHasShapesForBothDevices) {
  const auto all = load_problems();
  EXPECT_GE(all.size(), 3u);
  for (const Problem& p : all) {
    EXPECT_FALSE(p.shapes_for(wire::Backend::kCpu).empty()) << p.id;
    EXPECT_FALSE(p.shapes_for(wire::Backend::kCuda).empty()) << p.id;
    EXPECT_TRUE(std::filesystem::exists(p.folder / "README.md")) << p.id;
  }
}
TEST(Problem, AnUnknownIdSuggestsAKnownOne) {
  try {
    find_problem("topkk");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'topk'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace assay
