#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the plugin and the stand-in libcupti assume of CUPTI's ABI is what NVIDIA's headers of four releases
# say: tests/gpu/cupti_header.c compiles against each. A wrong number, place or type does not.
set -euo pipefail

cache=$(tests/bpf/wheels/wheels.sh 2>/dev/null) || {
  echo "skip: wheels: NVIDIA's headers cannot be fetched here"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The one header that comes with the compiler nvcc.
mkdir "$work/crt"
cat >"$work/crt/host_defines.h" <<'H'
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cuda_builtin_vector_align8(tag, members) struct tag { members }
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
H

compiles() { # compiles CUPTI SOURCE [OPTION...]
  local cuda=nvidia-cuda-runtime-cu12
  [[ $1 != *cupti-13.* ]] || cuda=nvidia-cuda-runtime-13
  cc -std=gnu17 -Wall -Werror -fsyntax-only "${@:3}" -I. -isystem "$1/include" \
    -isystem "$(echo "$cache/$cuda"*/include)" -isystem "$work" "$2"
}

is_refused() { # is_refused CUPTI WHAT FROM TO FILE: with FROM replaced in FILE
  local source=tests/gpu/cupti_header.c changed=$work/tree/$5
  rm -rf "$work/tree"
  mkdir -p "$(dirname "$changed")"
  sed "s/$3/$4/" "$5" >"$changed"
  ! cmp -s "$5" "$changed" || {
    echo "FAILED: '$3' is not in $5"
    exit 1
  }
  [ "$5" != "$source" ] || source=$changed
  ! compiles "$1" "$source" -I"$work/tree" 2>/dev/null || {
    echo "FAILED: a wrong $2 is not found"
    exit 1
  }
}

releases=0
for directory in "$cache"/nvidia-cuda-cupti*; do
  [ -e "$directory/include/cupti.h" ] || continue
  releases=$((releases + 1))
  compiles "$directory" tests/gpu/cupti_header.c || {
    echo "FAILED: the ABI of ${directory##*/} differs"
    exit 1
  }
  is_refused "$directory" number 'LAUNCH_EX = 652' 'LAUNCH_EX = 653' plugin/cupti/cupti_abi.h
  is_refused "$directory" place 'unused52\[10\]' 'unused52[9]' plugin/cupti/cupti_abi.h
  is_refused "$directory" type 'FlushPeriod(uint32_t ms)' 'FlushPeriod(int32_t ms)' tests/sim/lib/cupti/cupti.h
  is_refused "$directory" name 'NT_CUPTI_KIND_DRIVER, CUPTI' 'NT_CUPTI_KIND_RUNTIME, CUPTI' tests/gpu/cupti_header.c
done
[ "$releases" -eq 4 ] || {
  echo "FAILED: $releases releases of the headers, not 4"
  exit 1
}
echo "the ABI is that of $releases releases of CUPTI"
