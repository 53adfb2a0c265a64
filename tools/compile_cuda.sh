#!/usr/bin/env bash
# nvcc compiles every CUDA submission in the tree, as the judge would, without running any.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
compile() { # FILE
  "$1" -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -Xcompiler -fPIC -Irunner/abi -cubin \
    -o "$3/$(tr / _ <<<"$2").cubin" "$2" || { echo "does not compile: $2"; exit 1; }
}
export -f compile
# shellcheck disable=SC2016 # the inner shell expands them
git ls-files --cached --others --exclude-standard -- 'kernels/*.cu' 'corpus/*.cu' 'benchmarks/*.cu' |
  xargs -r -P "$(nproc)" -I{} bash -c 'compile "$0" "$1" "$2"' "$nvcc" {} "$out"
