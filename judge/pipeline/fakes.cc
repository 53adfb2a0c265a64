// SPDX-License-Identifier: Apache-2.0
#include "judge/pipeline/fakes.h"

#include <algorithm>

namespace assay {
namespace {

void fill(const FakeArgs& a, float value) {
  a.device.fill(a.out, {Distribution::Kind::kConstant, value}, 0);
}

/// The first tensor the output's elements could be copies of.
const Tensor& source_of(const FakeArgs& a) {
  const auto it = std::find_if(a.inputs.begin(), a.inputs.end(),
                               [](const Tensor& t) { return is_floating(t.dtype); });
  return it == a.inputs.end() ? a.inputs.front() : *it;
}

constexpr Fake kFakes[] = {
    {"zeros", "all zeros", [](const FakeArgs& a) { fill(a, 0); }},
    {"ones", "all ones", [](const FakeArgs& a) { fill(a, 1); }},
    {"constant", "the output's RMS everywhere", [](const FakeArgs& a) { fill(a, a.rms); }},
    {"mean", "the output's mean everywhere", [](const FakeArgs& a) { fill(a, a.mean); }},
    {"input", "the input passed through",
     [](const FakeArgs& a) { a.device.convert(source_of(a), a.out); }},
    {"previous", "the answer to the call before",
     [](const FakeArgs& a) { a.device.copy(a.out.data, a.previous.data, a.out.bytes()); }},
};

/// The mantissa of the next format down: f32 -> bf16, bf16 and f16 -> e4m3, e4m3 -> e5m2.
int coarser_mantissa(DType t) {
  switch (t) {
    case DType::kF64:
      return 22;
    case DType::kF32:
      return 7;
    case DType::kE4m3:
      return 2;
    default:
      return 3;
  }
}

void truncate(Device& d, const Tensor& t) {
  const std::int64_t row = t.shape[t.rank - 1];
  d.zero_tails(t, row, row - std::max<std::int64_t>(1, row / 8));
}

constexpr Degradation kDegradations[] = {
    {"lower_precision", "computed from data rounded to the next format down",
     [](Device& d, const Tensor& t) { d.coarsen(t, coarser_mantissa(t.dtype)); }},
    {"truncated", "computed without the last eighth of every row", truncate},
};

}  // namespace

std::span<const Fake> fakes() {
  return kFakes;
}
std::span<const Degradation> degradations() {
  return kDegradations;
}
bool is_floating(DType t) {
  return t == DType::kF32 || t == DType::kF64 || t == DType::kBf16 || t == DType::kF16 ||
         t == DType::kE4m3;
}

}  // namespace assay
