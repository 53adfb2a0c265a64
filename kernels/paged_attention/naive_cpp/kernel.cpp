// SPDX-License-Identifier: Apache-2.0
// Paged attention, head by head: all scores, their softmax, the weighted sum.
#include <assay/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

float wide(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}
uint16_t narrow(float f) {
  const auto u = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

struct Cache {
  const uint16_t* data;
  int64_t page, heads, columns;  // columns: of K and V together

  const uint16_t* row(const int32_t* table, int64_t token, int64_t head) const {
    return data + ((table[token / page] * page + token % page) * heads + head) * columns;
  }
};

void attend(const uint16_t* q, const Cache& cache, const int32_t* table, int64_t tokens,
            int64_t head, uint16_t* out) {
  const int64_t D = cache.columns / 2;
  std::vector<float> weights(static_cast<size_t>(tokens)), sum(static_cast<size_t>(D));
  float most = -INFINITY, total = 0;
  for (int64_t j = 0; j < tokens; ++j) {
    const uint16_t* k = cache.row(table, j, head);
    float dot = 0;
    for (int64_t c = 0; c < D; ++c) dot += wide(q[c]) * wide(k[c]);
    weights[j] = dot / std::sqrt(static_cast<float>(D));
    most = std::max(most, weights[j]);
  }
  for (int64_t j = 0; j < tokens; ++j) {
    const uint16_t* v = cache.row(table, j, head) + D;
    const float w = std::exp(weights[j] - most);
    total += w;
    for (int64_t c = 0; c < D; ++c) sum[c] += w * wide(v[c]);
  }
  for (int64_t c = 0; c < D; ++c) out[c] = narrow(sum[c] / total);
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void** state) {
  *state = nullptr;
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const int64_t B = inputs[0].shape[0], Hq = inputs[0].shape[1], D = inputs[0].shape[2];
  const Cache cache{static_cast<const uint16_t*>(inputs[1].data), inputs[1].shape[1],
                    inputs[1].shape[2], inputs[1].shape[3]};
  const auto* q = static_cast<const uint16_t*>(inputs[0].data);
  const auto* table = static_cast<const int32_t*>(inputs[2].data);
  const auto* lengths = static_cast<const int32_t*>(inputs[3].data);
  auto* out = static_cast<uint16_t*>(outputs[0].data);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      attend(q + (b * Hq + h) * D, cache, table + b * inputs[2].shape[1], lengths[b],
             h / (Hq / cache.heads), out + (b * Hq + h) * D);
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
