// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/any_device.h"
#include "tests/support/instance.h"

namespace assay {
namespace {

class PagedAttention : public AnyDevice {};
ASSAY_ON_EVERY_DEVICE(PagedAttention);

/// By the definition, in fp64, one token after the other.
std::vector<double> by_definition(Instance& a) {
  const auto n = [&](const char* axis) { return static_cast<std::size_t>(a.shape.axis(axis)); };
  const std::size_t B = n("B"), Hq = n("Hq"), Hkv = n("Hkv"), D = n("D"), page = n("page");
  const auto q = a.floats(a.inputs[0]), kv = a.floats(a.inputs[1]), table = a.floats(a.inputs[2]),
             lengths = a.floats(a.inputs[3]);
  const std::size_t pages = table.size() / B;
  std::vector<double> out;
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t h = 0; h < Hq; ++h) {
      const auto at = [&](std::size_t token, std::size_t column) {
        const auto p = static_cast<std::size_t>(table[b * pages + token / page]);
        return static_cast<double>(
            kv[((p * page + token % page) * Hkv + h * Hkv / Hq) * 2 * D + column]);
      };
      std::vector<double> score, sum(D);
      for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[b]); ++j) {
        double dot = 0;
        for (std::size_t c = 0; c < D; ++c) dot += at(j, c) * q[(b * Hq + h) * D + c];
        score.push_back(dot / std::sqrt(static_cast<double>(D)));
      }
      const double most = *std::max_element(score.begin(), score.end());
      double total = 0;
      for (std::size_t j = 0; j < score.size(); ++j) {
        const double w = std::exp(score[j] - most);
        total += w;
        for (std::size_t c = 0; c < D; ++c) sum[c] += w * at(j, D + c);
      }
      for (double s : sum) out.push_back(s / total);
    }
  return out;
}

TEST_P(PagedAttention, AgreesWithTheDefinitionInEveryCase) {
  const Problem p = find_problem("paged_attention");
  for (const auto& sizes : {std::vector<std::int64_t>{3, 4, 2, 16, 300, 16},
                            {2, 2, 2, 8, 31, 16},
                            {1, 6, 1, 32, 5, 16}}) {
    Instance a(device(), p, shape_of(p, sizes));
    std::vector<std::string> cases = p.structural;
    cases.emplace_back("");
    for (const std::string& c : cases) {
      a.draw(5);
      if (!c.empty()) a.structure(c, 9);
      a.oracle();
      const auto got = a.floats(a.expected[0]);
      const auto want = by_definition(a);
      ASSERT_EQ(got.size(), want.size());
      double most = 0;
      for (double w : want) most = std::max(most, std::abs(w));
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 1e-5 * most) << c << " at " << i;
    }
  }
}

TEST_P(PagedAttention, CasesAreWhatTheySay) {
  const Problem p = find_problem("paged_attention");
  Instance a(device(), p, shape_of(p, {3, 4, 2, 16, 300, 16}));
  a.draw(5);
  auto table = a.floats(a.inputs[2]);
  const auto pages = table.size() / 3;
  std::sort(table.begin(), table.end());
  EXPECT_EQ(std::unique(table.begin(), table.end()), table.end());  // no page twice
  a.structure("shared_page", 9);
  table = a.floats(a.inputs[2]);
  EXPECT_EQ(table[0], table[pages]);
  EXPECT_NE(table[2], table[pages + 2]);
  a.structure("garbage", 9);
  const auto lengths = a.floats(a.inputs[3]);
  EXPECT_EQ(lengths[0], 1);
  const auto cache = a.floats(a.inputs[1]);
  EXPECT_GT(std::count_if(cache.begin(), cache.end(), [](float v) { return std::isnan(v); }), 1000);
}

}  // namespace
}  // namespace assay
