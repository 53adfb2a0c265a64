// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/any_device.h"
#include "tests/support/instance.h"

namespace assay {
namespace {

class MoeSwiglu : public AnyDevice {};
ASSAY_ON_EVERY_DEVICE(MoeSwiglu);

TEST_P(MoeSwiglu, AgreesWithTheDefinitionInEveryCase) {
  const Problem p = find_problem("moe_swiglu");
  for (const auto& sizes : {std::vector<std::int64_t>{10, 40, 24, 4, 2}, {7, 33, 17, 5, 3}}) {
    Instance a(device(), p, shape_of(p, sizes));
    const auto H = static_cast<std::size_t>(sizes[1]), I = static_cast<std::size_t>(sizes[2]),
               E = static_cast<std::size_t>(sizes[3]);
    const auto rows = static_cast<std::size_t>(sizes[0] * sizes[4]);
    std::vector<std::string> cases = p.structural;
    cases.emplace_back("");
    for (const std::string& c : cases) {
      a.draw(5);
      if (!c.empty()) a.structure(c, 9);
      a.oracle();
      const auto gate = a.floats(a.constants[0]), up = a.floats(a.constants[1]);
      const auto x = a.floats(a.inputs[0]), offsets = a.floats(a.inputs[1]);
      const auto got = a.floats(a.expected[0]);
      ASSERT_EQ(offsets.front(), 0) << c;
      ASSERT_EQ(offsets.back(), rows) << c;
      ASSERT_TRUE(std::is_sorted(offsets.begin(), offsets.end())) << c;
      for (std::size_t e = 0; e < E; ++e)
        for (auto r = static_cast<std::size_t>(offsets[e]);
             r < static_cast<std::size_t>(offsets[e + 1]); ++r)
          for (std::size_t i = 0; i < I; ++i) {
            double g = 0, u = 0;
            for (std::size_t h = 0; h < H; ++h) {
              g += static_cast<double>(x[r * H + h]) * gate[(e * H + h) * I + i];
              u += static_cast<double>(x[r * H + h]) * up[(e * H + h) * I + i];
            }
            const double want = g / (1 + std::exp(-g)) * u;
            ASSERT_NEAR(got[r * I + i], want, 1e-8 + 1e-4 * std::abs(want)) << c << " row " << r;
          }
    }
  }
}

TEST_P(MoeSwiglu, CasesAreWhatTheySay) {
  const Problem p = find_problem("moe_swiglu");
  Instance a(device(), p, shape_of(p, {40, 8, 8, 8, 2}));
  const auto sizes = [&](const std::string& c) {
    a.draw(5);
    if (!c.empty()) a.structure(c, 9);
    const auto offsets = a.floats(a.inputs[1]);
    std::vector<float> out;
    for (std::size_t e = 0; e + 1 < offsets.size(); ++e) out.push_back(offsets[e + 1] - offsets[e]);
    return out;
  };
  EXPECT_EQ(sizes(""), std::vector<float>(8, 10));
  EXPECT_EQ(sizes("empty_experts"), (std::vector<float>{0, 20, 0, 20, 0, 20, 0, 20}));
  EXPECT_EQ(sizes("one_expert"), (std::vector<float>{0, 0, 0, 0, 80, 0, 0, 0}));
  auto ragged = sizes("ragged");
  std::sort(ragged.begin(), ragged.end());
  EXPECT_GT(ragged.back(), 12);  // more than a quarter over its share
}

}  // namespace
}  // namespace assay
