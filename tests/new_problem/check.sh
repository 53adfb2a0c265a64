#!/usr/bin/env bash
# A problem is a folder: in a copy of the tree, tools/new_problem.sh makes one, and with no other edit it is
# built, listed, graded and admitted.
set -euo pipefail
cd "$(dirname "$0")/../.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy" 2>/dev/null
cd "$copy"
tools/new_problem.sh row_softmax >/dev/null
if tools/new_problem.sh row_softmax 2>/dev/null; then
  echo "new_problem.sh wrote over a problem"
  exit 1
fi
{
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DASSAY_CUDA=OFF -DASSAY_TESTS=OFF
  cmake --build build
} >build.log 2>&1 || { tail -n 30 build.log; exit 1; }
export XDG_STATE_HOME=$copy/state
build/assay list row_softmax >/dev/null
build/assay grade row_softmax kernels/row_softmax/naive_cpp --device cpu >grade.log 2>&1 || { cat grade.log; exit 1; }
build/assay admit row_softmax --device cpu >admit.log 2>/dev/null || { cat admit.log; exit 1; }
# A kernel that forgets the maximum overflows in the structural case.
sed 's/std::exp(x\[i\] - most)/std::exp(x[i])/' kernels/row_softmax/naive_cpp/kernel.cpp >wrong.cpp
if build/assay check row_softmax wrong.cpp --device cpu >wrong.log 2>&1; then
  cat wrong.log
  exit 1
fi
