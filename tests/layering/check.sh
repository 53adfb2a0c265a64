#!/usr/bin/env bash
# The trust line and the order of the stages, checked on every #include:
#   wire/ includes only itself; runner/ includes only wire/ and itself; judge/ includes wire/, itself, and of
#   the runner nothing but the public ABI header; a stage includes only stages before it.
set -euo pipefail
cd "$(dirname "$0")/../.."
stages=(base device sandbox problem submission build run audit check bench record pipeline cli)
declare -A rank
for i in "${!stages[@]}"; do rank[${stages[i]}]=$i; done
# The device interface names the operations a problem provides; both sit below everything else.
allowed_forward='judge/device/.* judge/problem/ops.h'

bad=0
report() {
  echo "layering: $1 includes $2: $3"
  bad=1
}
while IFS=: read -r file include; do
  case $file in
    wire/*) [[ $include == wire/* ]] || report "$file" "$include" "wire/ knows only itself" ;;
    runner/*) [[ $include == wire/* || $include == runner/* || $include == assay/* ]] ||
      report "$file" "$include" "the runner never sees the judge" ;;
    judge/*)
      from=${file#judge/} from=${from%%/*}
      [[ -n ${rank[$from]:-} ]] || report "$file" "$from" "a stage that is not in the order"
      case $include in
        judge/*)
          to=${include#judge/} to=${to%%/*}
          [[ "$file $include" =~ ^${allowed_forward}$ ]] || ((rank[$to] <= rank[$from])) ||
            report "$file" "$include" "$to comes after $from" ;;
        wire/* | runner/abi/assay/kernel.h) ;;
        *) report "$file" "$include" "the judge shares only wire/ and the ABI header" ;;
      esac ;;
    problems/*)
      [[ $include == judge/device/* || $include == judge/problem/* || $include == wire/* || $include == problems/* ]] ||
        report "$file" "$include" "a problem knows the device and its own interface" ;;
    kernels/* | corpus/*) [[ $include == assay/* || $include != */* || $include == kernels/* ]] ||
      report "$file" "$include" "a submission knows the ABI header only" ;;
  esac
done < <(grep -rnoE '^#include "[^"]+"' --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.cpp' \
  wire runner judge problems kernels corpus | sed -E 's/^([^:]+):[0-9]+:#include "([^"]+)"/\1:\2/')
exit $bad
