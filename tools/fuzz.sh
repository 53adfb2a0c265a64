#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the wire with libFuzzer: tools/fuzz.sh [SECONDS_PER_TARGET, default 60] [TARGET ...]
# Targets: request reply session. Needs clang++ with its runtime (Debian: clang libclang-rt-14-dev).
# Inputs that reach new code are merged into tests/fuzz/corpus/TARGET/, which the unit tests replay; an
# input that breaks a property is printed, kept in the work folder, and ends the script with 1.
set -eu
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- request reply session
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/assay-fuzz.XXXXXX")
max_len=192 # long enough for every message with two or three items in each list
kept=60

command -v clang++ >/dev/null || { echo "fuzz.sh: clang++ not found; install clang" >&2; exit 2; }
for target in "$@"; do
  corpus=$root/tests/fuzz/corpus/$target
  mkdir -p "$corpus" "$work/$target" "$work/$target-merged" "$work/$target-crashes"
  clang++ -std=c++20 -O1 -g -DFMT_HEADER_ONLY=1 -I"$root" \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    "$root/tests/fuzz/${target}_fuzzer.cc" "$root/wire/codec.cc" "$root/judge/run/reply.cc" \
    -o "$work/${target}_fuzzer"
  echo "== $target: $seconds s"
  if ! nice "$work/${target}_fuzzer" -max_total_time="$seconds" -max_len=$max_len -timeout=5 \
    -use_value_profile=1 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="$work/$target-crashes/" "$work/$target" "$corpus" >"$work/$target.log" 2>&1; then
    tail -n 40 "$work/$target.log"
    echo "fuzz.sh: $target broke a property; the input is in $work/$target-crashes" >&2
    exit 1
  fi
  grep -E 'DONE|number_of_executed_units' "$work/$target.log"
  # Minimised: one input for each piece of code reached, the smallest that does.
  nice "$work/${target}_fuzzer" -merge=1 -max_len=$max_len "$work/$target-merged" "$corpus" \
    "$work/$target" >"$work/$target-merge.log" 2>&1
  rm -f "$corpus"/*
  find "$work/$target-merged" -type f -printf '%s %p\n' | sort -n | head -n $kept |
    while read -r _ file; do cp "$file" "$corpus/"; done
  echo "   corpus: $(find "$corpus" -type f | wc -l) files"
done
rm -rf "$work"
