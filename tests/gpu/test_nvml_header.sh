#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent assumes of NVML's ABI is what NVIDIA's headers of two releases say: tests/gpu/nvml_header.c
# compiles against each. A wrong number does not.
set -euo pipefail

cache=$(tests/bpf/wheels/wheels.sh 2>/dev/null) || {
  echo "skip: wheels: NVIDIA's headers cannot be fetched here"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compiles() { # compiles DIRECTORY SOURCE
  cc -std=gnu17 -Wall -Werror -Wno-deprecated-declarations -fsyntax-only -I. -isystem "$1" "$2"
}

sed 's/NT_NVML_CLOCK_MEM, NVML_CLOCK_MEM/NT_NVML_CLOCK_SM, NVML_CLOCK_MEM/' tests/gpu/nvml_header.c >"$work/wrong.c"
releases=0
for directory in "$cache"/nvidia-nvml-dev*; do
  [ -e "$directory/nvml.h" ] || continue
  releases=$((releases + 1))
  compiles "$directory" tests/gpu/nvml_header.c || {
    echo "FAILED: the ABI of ${directory##*/} differs"
    exit 1
  }
  if compiles "$directory" "$work/wrong.c" 2>/dev/null; then
    echo "FAILED: a wrong number is not found"
    exit 1
  fi
done
[ "$releases" -eq 2 ] || {
  echo "FAILED: $releases releases of the header, not 2"
  exit 1
}
echo "the ABI is that of $releases releases of nvml.h"
