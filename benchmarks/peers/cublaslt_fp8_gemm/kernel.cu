// SPDX-License-Identifier: Apache-2.0
// Not a submission anybody may hand in (vendor GEMMs are forbidden): cuBLASLt's row-wise scaled fp8
// product through our bench, to hold our bench against figures measured elsewhere.
#include <assay/kernel.h>
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <vector>

namespace {

struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  bool ok = true;

  Library() {
    void* so = dlopen("libcublasLt.so.13", RTLD_NOW);
    if (so == nullptr) so = dlopen("/usr/local/cuda/lib64/libcublasLt.so.13", RTLD_NOW);
    const auto find = [&](auto& f, const char* name) {
      f = so == nullptr ? nullptr : reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(so, name));
      ok = ok && f != nullptr;
    };
    find(create, "cublasLtCreate");
    find(destroy, "cublasLtDestroy");
    find(matmul, "cublasLtMatmul");
    find(desc_create, "cublasLtMatmulDescCreate");
    find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(layout_create, "cublasLtMatrixLayoutCreate");
    find(preference_create, "cublasLtMatmulPreferenceCreate");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  }
};

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;

struct State {
  Library library;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t weight_layout = nullptr, x_layout = nullptr, y_layout = nullptr;
  cublasLtMatmulHeuristicResult_t best{};
  const void* weight = nullptr;
  float* ones = nullptr;  // x has no scale
  void* workspace = nullptr;
};

/// Column-major y^T[N, M] = weight[N, K] x^T[K, M], every row of weight with its own scale.
bool plan(State& s, int64_t M, int64_t N, int64_t K, const float* weight_scale) {
  const Library& l = s.library;
  const cublasOperation_t transpose = CUBLAS_OP_T;
  const std::int8_t fast = 1;
  const cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
  if (l.desc_create(&s.desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS) return false;
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode);
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode);
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &weight_scale, sizeof weight_scale);
  const float* ones = s.ones;
  l.desc_set(s.desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &ones, sizeof ones);
  const auto size = [](int64_t v) { return static_cast<std::uint64_t>(v); };
  l.layout_create(&s.weight_layout, CUDA_R_8F_E4M3, size(K), size(N), K);
  l.layout_create(&s.x_layout, CUDA_R_8F_E4M3, size(K), size(M), K);
  l.layout_create(&s.y_layout, CUDA_R_16BF, size(N), size(M), N);
  cublasLtMatmulPreference_t preference = nullptr;
  l.preference_create(&preference);
  l.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                   sizeof kWorkspaceBytes);
  const std::uint32_t alignment = ASSAY_ALIGNMENT;
  for (auto a :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    l.preference_set(preference, a, &alignment, sizeof alignment);
  int found = 0;
  return l.heuristic(s.handle, s.desc, s.weight_layout, s.x_layout, s.y_layout, s.y_layout,
                     preference, 1, &s.best, &found) == CUBLAS_STATUS_SUCCESS &&
         found > 0;
}

}  // namespace

ASSAY_EXPORT int assay_prepare(const assay_problem* problem, const assay_tensor* constants, int32_t,
                               void** state) {
  const int64_t M = problem->axes[0].value, N = problem->axes[1].value, K = problem->axes[2].value;
  auto* s = new State;
  *state = s;
  if (!s->library.ok || s->library.create(&s->handle) != CUBLAS_STATUS_SUCCESS) return ASSAY_FAILED;
  const std::vector<float> ones(static_cast<std::size_t>(M), 1.0f);
  if (cudaMalloc(&s->ones, ones.size() * 4) != cudaSuccess ||
      cudaMalloc(&s->workspace, kWorkspaceBytes) != cudaSuccess)
    return ASSAY_FAILED;
  cudaMemcpy(s->ones, ones.data(), ones.size() * 4, cudaMemcpyHostToDevice);
  s->weight = constants[0].data;
  return plan(*s, M, N, K, static_cast<const float*>(constants[1].data)) ? ASSAY_OK
                                                                         : ASSAY_UNSUPPORTED;
}

ASSAY_EXPORT int assay_run(void* state, const assay_tensor* inputs, int32_t,
                           const assay_tensor* outputs, int32_t, void* stream) {
  const auto& s = *static_cast<State*>(state);
  const float one = 1, zero = 0;
  return s.library.matmul(s.handle, s.desc, &one, s.weight, s.weight_layout, inputs[0].data,
                          s.x_layout, &zero, outputs[0].data, s.y_layout, outputs[0].data,
                          s.y_layout, &s.best.algo, s.workspace, kWorkspaceBytes,
                          static_cast<cudaStream_t>(stream)) == CUBLAS_STATUS_SUCCESS
             ? ASSAY_OK
             : ASSAY_FAILED;
}

ASSAY_EXPORT void assay_release(void* state) {
  auto* s = static_cast<State*>(state);
  cudaFree(s->ones);
  cudaFree(s->workspace);
  s->library.destroy(s->handle);
  delete s;
}
