// SPDX-License-Identifier: Apache-2.0
#if defined(ASSAY_HAVE_CUDA)
#include "judge/device/cublas.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "judge/base/fault.h"

namespace assay {
namespace {

void* open_library(const std::string& name) {
  std::vector<std::string> places = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* v = std::getenv(variable)) places.push_back(std::string(v) + "/lib64/");
  places.emplace_back("/usr/local/cuda/lib64/");
  for (const std::string& place : places)
    for (const char* version : {".so.13", ".so.12", ".so"})
      if (void* library = ::dlopen((place + name + version).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
  throw JudgeError("{} not found: install the CUDA toolkit's libraries or set CUDA_HOME", name);
}

template <class F>
void find(void* library, F& f, const char* name) {
  f = reinterpret_cast<F>(::dlsym(library, name));
  if (f == nullptr) throw JudgeError("{} is missing from cuBLAS", name);
}

void check(cublasStatus_t s, const char* what) {
  if (s != CUBLAS_STATUS_SUCCESS)
    throw JudgeError("{}: cuBLAS status {}", what, static_cast<int>(s));
}

}  // namespace

struct Cublas::Functions {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetMathMode) set_math_mode;
  decltype(&cublasSgemm_v2) sgemm;
  decltype(&cublasLtCreate) lt_create;
  decltype(&cublasLtDestroy) lt_destroy;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  cublasHandle_t handle = nullptr;
  cublasLtHandle_t lt = nullptr;
};

Cublas::Cublas() : f_(std::make_unique<Functions>()) {
  void* lt = open_library("libcublasLt");
  void* blas = open_library("libcublas");
  find(blas, f_->create, "cublasCreate_v2");
  find(blas, f_->destroy, "cublasDestroy_v2");
  find(blas, f_->set_math_mode, "cublasSetMathMode");
  find(blas, f_->sgemm, "cublasSgemm_v2");
  find(lt, f_->lt_create, "cublasLtCreate");
  find(lt, f_->lt_destroy, "cublasLtDestroy");
  find(lt, f_->matmul, "cublasLtMatmul");
  find(lt, f_->desc_create, "cublasLtMatmulDescCreate");
  find(lt, f_->desc_destroy, "cublasLtMatmulDescDestroy");
  find(lt, f_->desc_set, "cublasLtMatmulDescSetAttribute");
  find(lt, f_->layout_create, "cublasLtMatrixLayoutCreate");
  find(lt, f_->layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(lt, f_->preference_create, "cublasLtMatmulPreferenceCreate");
  find(lt, f_->preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(lt, f_->preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(lt, f_->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  check(f_->create(&f_->handle), "cublasCreate");
  check(f_->set_math_mode(f_->handle, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
  check(f_->lt_create(&f_->lt), "cublasLtCreate");
}

Cublas::~Cublas() {
  if (f_->handle != nullptr) f_->destroy(f_->handle);
  if (f_->lt != nullptr) f_->lt_destroy(f_->lt);
}

void Cublas::sgemm(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                   const float* b, float* c) {
  // Row-major c = a op(b) is column-major c^T = op(b)^T a^T.
  const float one = 1, zero = 0;
  check(f_->sgemm(f_->handle, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
                  static_cast<int>(n), static_cast<int>(m), static_cast<int>(k), &one, b,
                  static_cast<int>(transpose_b ? k : n), a, static_cast<int>(k), &zero, c,
                  static_cast<int>(n)),
        "cublasSgemm");
}

bool Cublas::square(Format format, std::int64_t n, const void* x, const void* w, void* y,
                    void* workspace, std::int64_t workspace_bytes) {
  const bool integer = format == Format::kInt8;
  const cudaDataType_t in = format == Format::kBf16  ? CUDA_R_16BF
                            : format == Format::kFp8 ? CUDA_R_8F_E4M3
                                                     : CUDA_R_8I;
  const cudaDataType_t out = integer ? CUDA_R_32I : CUDA_R_16BF;
  const auto size = static_cast<std::uint64_t>(n);
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t lx = nullptr, lw = nullptr, ly = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  check(f_->desc_create(&desc, integer ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                        integer ? CUDA_R_32I : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const cublasOperation_t transpose = CUBLAS_OP_T;
  f_->desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
  if (format == Format::kFp8) {
    const std::int8_t fast = 1;
    f_->desc_set(desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
  }
  f_->layout_create(&lw, in, size, size, n);
  f_->layout_create(&lx, in, size, size, n);
  f_->layout_create(&ly, out, size, size, n);
  f_->preference_create(&preference);
  const auto bytes = static_cast<std::size_t>(workspace_bytes);
  f_->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  cublasStatus_t s = f_->heuristic(f_->lt, desc, lw, lx, ly, ly, preference, 1, &best, &found);
  if (s == CUBLAS_STATUS_SUCCESS && found > 0) {
    const float one = 1, zero = 0;
    const std::int32_t int_one = 1, int_zero = 0;
    s = f_->matmul(f_->lt, desc, integer ? static_cast<const void*>(&int_one) : &one, w, lw, x, lx,
                   integer ? static_cast<const void*>(&int_zero) : &zero, y, ly, y, ly, &best.algo,
                   workspace, bytes, nullptr);
  }
  f_->preference_destroy(preference);
  f_->layout_destroy(ly);
  f_->layout_destroy(lx);
  f_->layout_destroy(lw);
  f_->desc_destroy(desc);
  return s == CUBLAS_STATUS_SUCCESS && found > 0;
}

}  // namespace assay
#endif
