#!/usr/bin/env bash
# Builds the host code with the address and undefined-behaviour sanitizers and runs the tests of what
# parses hostile or foreign input. `tools/sanitize.sh all` runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset asan >/dev/null
tests=(wire_test problem_test base_test submission_test)
pattern='^(wire|problem|base|submission)\.'
if [[ ${1:-} == all ]]; then
  cmake --build --preset asan
  pattern=.
else
  cmake --build --preset asan --target "${tests[@]}"
fi
ctest --preset asan -R "$pattern" --output-on-failure | tail -n 3
