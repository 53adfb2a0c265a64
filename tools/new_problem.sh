#!/usr/bin/env bash
# tools/new_problem.sh ID: writes the skeleton of a problem: problems/ID (problem.yaml, ops.h, README.md) and an
# honest submission for each device under kernels/ID. It is whole: a row softmax that builds, is graded and is
# admitted. Replace it piece by piece, and keep it that way. Nothing else has to be edited.
set -euo pipefail
cd "$(dirname "$0")/.."
id=${1:-}
if [[ ! $id =~ ^[a-z][a-z0-9_]*$ || $# -ne 1 ]]; then
  echo "usage: tools/new_problem.sh ID   (lower-case letters, digits and _, a letter first)" >&2
  exit 2
fi
for folder in "problems/$id" "kernels/$id"; do
  [[ ! -e $folder ]] || { echo "new_problem: $folder exists already" >&2; exit 2; }
done
mkdir -p "problems/$id" "kernels/$id/naive_cpp" "kernels/$id/naive_cuda"

cat >"problems/$id/problem.yaml" <<EOF2
# y = softmax(x) along every row. docs/problem-format.md explains the keys.
id: $id
title: Row softmax
deck: hard
summary: "y[R,N] = exp(x - max) / sum exp(x - max) along every row, fp32"
axes: [R, N]
regime: memory
peak: dram

inputs:
  x: {dtype: f32, shape: [R, N], draw: "normal(1)"}
outputs:
  y: {dtype: f32, shape: [R, N]}

# Judge-only: what the oracle writes.
expected:
  y: {dtype: f32, shape: [R, N]}

shapes:
  cuda:
    - [4096, 8192]
    - [1024, 4127]
  cpu:
    - [64, 512]
    - [33, 257]

# An honest exp is right within a few units of the last place; x rounded to bf16 is off by some 1e-3.
seeds: 3
tolerance: {atol: 1.0e-9, rtol: 1.0e-4}
stress:
  - {name: flat, scale: {x: 1.0e-2}, atol: 1.0e-9, rtol: 5.0e-6}
  - {name: peaked, scale: {x: 8}, atol: 1.0e-9, rtol: 1.0e-4}
structural: [offset]

published:
  flops: 5*R*N
  bytes: 8*R*N
floor:
  flops: 5*R*N
  rate: fp32
  read_bytes: 4*R*N
  write_bytes: 4*R*N

# Of exp and of a sum in fp32, as a share of the RMS output.
noise: {accumulate_relative: 1.0e-6, max_ratio: 4}
EOF2

cat >"problems/$id/ops.h" <<EOF2
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "judge/problem/ops.h"

namespace assay::problems::$id {

struct Ops {
  /// Row by row, in fp64.
  template <class D>
  static void oracle(D& d, const OracleArgs& a) {
    const std::int64_t N = a.shape.axis("N");
    const float* x = a.inputs[0].template as<float>();
    float* y = a.expected[0].template as<float>();
    d.for_each(
        a.shape.axis("R"), ASSAY_LAMBDA(std::int64_t r) {
          const float* row = x + r * N;
          float most = row[0];
          for (std::int64_t i = 1; i < N; ++i) most = fmaxf(most, row[i]);
          double sum = 0;
          for (std::int64_t i = 0; i < N; ++i) sum += exp(static_cast<double>(row[i]) - most);
          for (std::int64_t i = 0; i < N; ++i)
            y[r * N + i] = static_cast<float>(exp(static_cast<double>(row[i]) - most) / sum);
        });
  }

  /// The rows change places, and so do those of the output.
  template <class D>
  static void rekey(D& d, const RekeyArgs& a) {
    const std::int64_t R = a.shape.axis("R"), N = a.shape.axis("N");
    const std::uint64_t key = a.key;
    const float *x0 = a.base_inputs[0].template as<float>(),
                *y0 = a.base_expected[0].template as<float>();
    float *x = a.inputs[0].template as<float>(), *y = a.expected[0].template as<float>();
    d.for_each(
        R * N, ASSAY_LAMBDA(std::int64_t i) {
          const std::int64_t r = i / N;
          const std::int64_t from =
              key == 0 ? r
                       : static_cast<std::int64_t>(permute_index(
                             key, static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(R)));
          x[i] = x0[from * N + i % N];
          y[i] = y0[from * N + i % N];
        });
  }
  static std::int64_t rekey_capacity(const Shape& s) { return s.axis("R") >= 8 ? 64 : 1; }

  template <class D>
  static void structure(D& d, const StructureArgs& a) {
    float* x = a.inputs[0].template as<float>();
    if (a.name == "offset")  // exp() overflows unless the maximum is subtracted first
      d.for_each(
          a.inputs[0].size(), ASSAY_LAMBDA(std::int64_t i) { x[i] += 200.0f; });
  }
};

}  // namespace assay::problems::$id
EOF2

cat >"problems/$id/README.md" <<EOF2
# $id

What it is and where it is used.

**Scored** by what, and why.

**Checked** how; what tolerance an honest kernel needs, and what the cheapest wrong answer would need.

**Re-keyed** by putting the rows in another order, exactly.

**Structural cases**: an offset of 200, at which exp() overflows.

**Traps**.
EOF2

cat >"kernels/$id/naive_cpp/kernel.cpp" <<'EOF2'
// SPDX-License-Identifier: Apache-2.0
// Row softmax in three passes.
#include <assay/kernel.h>

#include <algorithm>
#include <cmath>

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void**) {
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void*) {
  const int64_t R = inputs[0].shape[0], N = inputs[0].shape[1];
  for (int64_t r = 0; r < R; ++r) {
    const float* x = static_cast<const float*>(inputs[0].data) + r * N;
    float* y = static_cast<float*>(outputs[0].data) + r * N;
    const float most = *std::max_element(x, x + N);
    float sum = 0;
    for (int64_t i = 0; i < N; ++i) sum += y[i] = std::exp(x[i] - most);
    for (int64_t i = 0; i < N; ++i) y[i] /= sum;
  }
  return ASSAY_OK;
}

ASSAY_EXPORT void assay_release(void*) {}
EOF2

cat >"kernels/$id/naive_cuda/kernel.cu" <<'EOF2'
// SPDX-License-Identifier: Apache-2.0
// Row softmax, a block a row.
#include <assay/kernel.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

/// Of all threads of the block, through shared memory.
template <class Op>
__device__ float reduce(float v, float* shared, Op op) {
  __syncthreads();
  shared[threadIdx.x] = v;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

__global__ void softmax(const float* x, float* y, int64_t N) {
  __shared__ float shared[kThreads];
  x += blockIdx.x * N;
  y += blockIdx.x * N;
  float most = -INFINITY, sum = 0;
  for (int64_t i = threadIdx.x; i < N; i += kThreads) most = fmaxf(most, x[i]);
  most = reduce(most, shared, [](float a, float b) { return fmaxf(a, b); });
  for (int64_t i = threadIdx.x; i < N; i += kThreads) sum += expf(x[i] - most);
  sum = reduce(sum, shared, [](float a, float b) { return a + b; });
  for (int64_t i = threadIdx.x; i < N; i += kThreads) y[i] = expf(x[i] - most) / sum;
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem*, const assay_tensor*, int32_t, void**) {
  return ASSAY_OK;
}

ASSAY_EXPORT int assay_run(void*, const assay_tensor* inputs, int32_t, const assay_tensor* outputs,
                           int32_t, void* stream) {
  softmax<<<static_cast<unsigned>(inputs[0].shape[0]), kThreads, 0,
            static_cast<cudaStream_t>(stream)>>>(static_cast<const float*>(inputs[0].data),
                                                 static_cast<float*>(outputs[0].data),
                                                 inputs[0].shape[1]);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void*) {}
EOF2

cat <<EOF2
problems/$id and kernels/$id are written. Build, then:
  build/assay list $id
  build/assay grade $id kernels/$id/naive_cpp --device cpu
  build/assay admit $id --device cpu
CONTRIBUTING.md says what belongs to a problem besides: a test against brute force, a corpus case.
EOF2
