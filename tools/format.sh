#!/usr/bin/env bash
# Checks (or with --fix, applies) the formatting of every C++ and CUDA file in git.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.cpp' '*.cu' '*.cuh')
if [[ ${1:-} == --fix ]]; then
  "$format" -i "${files[@]}"
else
  "$format" --dry-run -Werror "${files[@]}" 2>&1 | { grep -E 'error:' | cut -d: -f1 | sort -u | sed 's/^/not formatted (tools\/format.sh --fix): /'; } && exit 1
  exit 0
fi
