// SPDX-License-Identifier: Apache-2.0
// Every problem's own code on every device: oracles against fp64, symmetries, comparisons.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "judge/problem/ops.h"
#include "judge/problem/problem.h"
#include "tests/support/any_device.h"
#include "tests/support/instance.h"

namespace assay {
namespace {

/// A size at which brute force is quick, per problem.
Shape small_shape(const Problem& p) {
  if (p.id == "fp8_gemm") return shape_of(p, {24, 20, 67});
  if (p.id == "w4a16_gemm") return shape_of(p, {18, 24, 256});
  if (p.id == "topk") return shape_of(p, {3, 1100, 9});
  return p.shapes_for(wire::Backend::kCpu).front();
}

class Problems : public AnyDevice {};
ASSAY_ON_EVERY_DEVICE(Problems);

TEST_P(Problems, EveryOneHasCodeForThisDevice) {
  for (const Problem& p : load_problems()) EXPECT_NE(device().kernels(p.id), nullptr) << p.id;
}

/// inputs moved by the symmetry, then the oracle = the oracle, then moved by the symmetry.
TEST_P(Problems, TheOracleCommutesWithEverySymmetry) {
  for (const Problem& p : load_problems()) {
    Instance a(device(), p, small_shape(p));
    a.draw(11);
    a.oracle();
    for (std::uint64_t key : {0ull, 1ull, 0x123456789abcdefull}) {
      const auto inputs = a.make(p.read()), expected = a.make(p.expected);
      a.kernels->rekey(device(), {a.shape, key, a.inputs, a.expected, inputs, expected});
      const auto again = a.make(p.expected);
      a.kernels->oracle(device(), {a.shape, a.constants, a.derived, inputs, again});
      for (std::size_t o = 0; o < expected.size(); ++o) {
        const auto moved = a.floats(expected[o]), fresh = a.floats(again[o]);
        double most = 0;
        for (float v : fresh) most = std::max(most, std::abs(static_cast<double>(v)));
        for (std::size_t i = 0; i < fresh.size(); ++i)  // the product may sum in another order
          ASSERT_NEAR(moved[i], fresh[i], 1e-5 * most) << p.id << " key " << key << " at " << i;
      }
      const bool moved = a.floats(inputs[0]) != a.floats(a.inputs[0]);
      EXPECT_EQ(moved, key != 0) << p.id;
    }
  }
}

TEST_P(Problems, AnotherSeedAnotherDraw) {
  for (const Problem& p : load_problems()) {
    Instance a(device(), p, small_shape(p));
    a.draw(1);
    const auto first = a.floats(a.inputs[0]);
    a.draw(2);
    EXPECT_NE(a.floats(a.inputs[0]), first) << p.id;
  }
}

TEST_P(Problems, Fp8GemmAgreesWithFp64) {
  const Problem p = find_problem("fp8_gemm");
  Instance a(device(), p, small_shape(p));
  a.draw(3);
  a.oracle();
  const auto x = a.floats(a.inputs[0]), w = a.floats(a.constants[0]), s = a.floats(a.constants[1]);
  const auto y = a.floats(a.expected[0]);
  const std::int64_t M = 24, N = 20, K = 67;
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < K; ++k)
        sum += static_cast<double>(x[static_cast<std::size_t>(m * K + k)]) *
               w[static_cast<std::size_t>(n * K + k)];
      sum *= s[static_cast<std::size_t>(n)];
      ASSERT_NEAR(y[static_cast<std::size_t>(m * N + n)], sum, 1e-5 + 1e-5 * std::abs(sum));
    }
  // The largest weight of each row fills the range, and the scale gives it its size back.
  for (std::int64_t n = 0; n < N; ++n) {
    float most = 0;
    for (std::int64_t k = 0; k < K; ++k)
      most = std::max(most, std::abs(w[static_cast<std::size_t>(n * K + k)]));
    EXPECT_EQ(most, 448);
    EXPECT_GT(448 * s[static_cast<std::size_t>(n)], 0.02);
    EXPECT_LT(448 * s[static_cast<std::size_t>(n)], 0.12);
  }
}

TEST_P(Problems, W4a16GemmAgreesWithFp64) {
  const Problem p = find_problem("w4a16_gemm");
  Instance a(device(), p, small_shape(p));
  a.draw(4);
  a.oracle();
  const auto x = a.floats(a.inputs[0]), q = a.floats(a.constants[0]);
  const auto scales = a.floats(a.constants[1]), zeros = a.floats(a.constants[2]);
  const auto y = a.floats(a.expected[0]);
  const std::size_t M = 18, N = 24, K = 256;
  std::vector<int> histogram(16);
  for (std::size_t m = 0; m < M; ++m)
    for (std::size_t n = 0; n < N; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < K; ++k) {
        const int pair = static_cast<int>(q[k / 2 * N + n]);
        const int value = k % 2 == 0 ? pair & 15 : pair >> 4;
        ++histogram[static_cast<std::size_t>(value)];
        sum += static_cast<double>(x[m * K + k]) * (value - zeros[k / 128 * N + n]) *
               scales[k / 128 * N + n];
      }
      ASSERT_NEAR(y[m * N + n], sum, 1e-4 + 1e-5 * std::abs(sum));
    }
  EXPECT_GT(*std::min_element(histogram.begin(), histogram.end()), 0);  // every code is used
  for (float z : zeros) EXPECT_TRUE(z >= 0 && z <= 15 && z == std::floor(z));
}

TEST_P(Problems, TopkAgreesWithSortingInEveryCase) {
  const Problem p = find_problem("topk");
  for (const auto& sizes : {std::vector<std::int64_t>{3, 1100, 9}, {2, 64, 64}, {4, 513, 1}}) {
    Instance a(device(), p, shape_of(p, sizes));
    std::vector<std::string> cases = p.structural;
    cases.emplace_back("");
    for (const std::string& c : cases) {
      a.draw(5);
      if (!c.empty()) a.structure(c, 9);
      a.oracle();
      const auto x = a.floats(a.inputs[0]), v = a.floats(a.expected[0]);
      const std::size_t B = static_cast<std::size_t>(sizes[0]),
                        n = static_cast<std::size_t>(sizes[1]),
                        k = static_cast<std::size_t>(sizes[2]);
      for (std::size_t b = 0; b < B; ++b) {
        std::vector<float> row(x.begin() + static_cast<std::ptrdiff_t>(b * n),
                               x.begin() + static_cast<std::ptrdiff_t>((b + 1) * n));
        std::sort(row.begin(), row.end(), std::greater<>());
        for (std::size_t j = 0; j < k; ++j)
          ASSERT_EQ(v[b * k + j], row[j]) << c << " " << b << " " << j;
      }
    }
  }
}

TEST_P(Problems, TopkComparisonSeesWhatIsWrong) {
  const Problem p = find_problem("topk");
  Instance a(device(), p, shape_of(p, {2, 600, 4}));
  a.draw(6);
  a.oracle();
  const auto x = a.floats(a.inputs[0]);
  auto values = a.floats(a.expected[0]);
  std::vector<std::int64_t> index;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(i / 4 * 600);
    index.push_back(std::find(row, row + 600, values[i]) - row);
  }
  const auto bad = [&](int output) {
    a.put(a.outputs[0], values);
    a.put(a.outputs[1], index);
    return a.compare(output).bad;
  };
  EXPECT_EQ(bad(0), 0);
  EXPECT_EQ(bad(1), 0);
  const auto good_values = values;
  const auto good_index = index;
  std::swap(values[0], values[1]);
  EXPECT_EQ(bad(0), 2);
  values = good_values;
  for (std::int64_t wrong : {std::int64_t{-1}, std::int64_t{600}, good_index[1], INT64_MIN}) {
    index = good_index;
    index[2] = wrong;
    EXPECT_EQ(bad(1), 1) << wrong;
  }
}

/// The oracle rounded to the output's type is right; with one element moved it is wrong, there.
TEST_P(Problems, GemmComparisonNamesTheWorstElement) {
  for (const char* id : {"fp8_gemm", "w4a16_gemm"}) {
    const Problem p = find_problem(id);
    Instance a(device(), p, small_shape(p));
    a.draw(7);
    a.oracle();
    const auto y = a.floats(a.expected[0]);
    std::vector<Bf16> out;
    for (float v : y) out.push_back(to_bf16(v));
    a.put(a.outputs[0], out);
    EXPECT_TRUE(a.compare(0).ok());
    out[17] = to_bf16(y[17] + 1.0f);
    a.put(a.outputs[0], out);
    const CompareStats s = a.compare(0);
    EXPECT_EQ(s.bad, 1);
    EXPECT_EQ(s.worst_index, 17);
    EXPECT_EQ(s.count, static_cast<std::int64_t>(y.size()));
    out[17] = Bf16{0x7fc1};
    a.put(a.outputs[0], out);
    EXPECT_EQ(a.compare(0).non_finite, 1);
  }
}

}  // namespace
}  // namespace assay
