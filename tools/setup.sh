#!/usr/bin/env bash
# Installs what Assay needs on Debian 12 or Ubuntu 24.04, as root or through sudo. Does nothing when all
# of it is there. `tools/setup.sh test` adds what only the tests need.
set -euo pipefail

packages=(g++ make cmake ninja-build bubblewrap libseccomp-dev libsqlite3-dev libssl-dev libcli11-dev
  nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libopenblas0-pthread)
if [[ ${1:-} == test ]]; then
  packages+=(libgtest-dev libgmock-dev librapidcheck-dev clang-format-14 shellcheck)
fi

missing=()
for p in "${packages[@]}"; do
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null) == installed ]] || missing+=("$p")
done
((${#missing[@]})) || exit 0

sudo=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "setup: these packages are missing and there is no sudo: ${missing[*]}" >&2
    exit 3
  }
  sudo=(sudo)
fi
echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
