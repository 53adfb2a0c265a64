#!/usr/bin/env bash
# The GPU half: every test on the cuda device, the shipped submissions, the corpus, and the bench held
# against clocks and peers. Builds first unless BUILD names a folder that is built already.
# tools/gpu.sh [tests|demo|corpus|timing|peers|repeat ...]; default: all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
[[ -n ${BUILD:-} ]] || { cmake -S . -B "$build" -G Ninja -DASSAY_CUDA=ON >/dev/null && cmake --build "$build"; }
export ASSAY_HOME=${ASSAY_HOME:-$PWD}
assay=$build/assay
(($#)) || set -- tests demo corpus timing peers repeat
nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader

status=0
for part; do
  echo "== $part"
  case $part in
    tests) # the device and problem tests run on the cpu and on the GPU
      for t in device problems; do "$build/${t}_test" --gtest_brief=1 --gtest_filter='*cuda*' || status=1; done ;;
    demo) "$assay" demo --device cuda --quiet || status=1 ;;
    corpus) "$assay" corpus --device cuda --quiet || status=1 ;;
    timing) "$build/assay-timing" || status=1 ;;
    peers) # K = 4127 is not a size cuBLASLt takes
      "$assay" grade fp8_gemm benchmarks/peers/cublaslt_fp8_gemm --device cuda --shapes 0,2,3 --quiet --no-record || status=1
      ! python3 -c 'import torch' 2>/dev/null || python3 benchmarks/peers/torch_scaled_mm.py || status=1 ;;
    repeat) # the same submission five times
      for problem in fp8_gemm topk; do
        for _ in 1 2 3 4 5; do
          "$assay" grade "$problem" "kernels/$problem/decent_cuda" --device cuda --quiet | grep -E '^(grade|verdict|geomean|seed|note|warn)' || status=1
        done
      done ;;
    *) echo "gpu.sh: no part '$part'" >&2; exit 2 ;;
  esac
done
exit $status
