#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent assumes of AMD SMI's ABI is what four releases of amdsmi.h say, by the binding that is made from
# it: tests/gpu/amdsmi_header.c compiles against each. A wrong number, place or type does not.
set -euo pipefail

cache=$(tests/bpf/wheels/wheels.sh wheels_amdsmi.txt 2>/dev/null) || {
  echo "skip: wheels: AMD's binding cannot be fetched here"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compiles() { # compiles RELEASE SOURCE
  cc -std=gnu17 -Wall -Werror -fsyntax-only "-DAMDSMI_LAYOUT=\"$work/layout.h\"" "-DAMDSMI_RELEASE=$1" -I. "$2"
}

is_refused() { # is_refused RELEASE WHAT FROM TO: with FROM replaced in the source
  sed "s/$3/$4/" tests/gpu/amdsmi_header.c >"$work/wrong.c"
  ! cmp -s tests/gpu/amdsmi_header.c "$work/wrong.c" || {
    echo "FAILED: '$3' is not in the source"
    exit 1
  }
  ! compiles "$1" "$work/wrong.c" 2>/dev/null || {
    echo "FAILED: a wrong $2 is not found"
    exit 1
  }
}

releases=0
for release in 24:6.2.4 24:6.3.3 25:6.4.4 26:7.0.2; do
  python3 tests/gpu/amdsmi_layout.py "$cache/amdsmi-${release#*:}/amdsmi_wrapper.py" >"$work/layout.h"
  compiles "${release%%:*}" tests/gpu/amdsmi_header.c || {
    echo "FAILED: the ABI of ${release#*:} differs"
    exit 1
  }
  is_refused "${release%%:*}" number 'CLOCK_MEM, AMDSMI_CLK_TYPE_MEM' 'CLOCK_GFX, AMDSMI_CLK_TYPE_MEM'
  is_refused "${release%%:*}" place 'hotspot_celsius, amdsmi' 'edge_celsius, amdsmi'
  is_refused "${release%%:*}" type 'get_gpu_ecc_count, nt_amdsmi_device, uint64_t' 'get_gpu_ecc_count, nt_amdsmi_device, uint32_t'
  releases=$((releases + 1))
done
echo "the ABI is that of $releases releases of amdsmi.h"
