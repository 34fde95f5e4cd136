#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the line coverage of each source file after a run of a COV=1 build.
#
#   tests/cov.sh build/cov
set -euo pipefail

objects=$1/obj
root=$PWD
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
find "$root/$objects" -name '*.gcda' ! -path '*/tests/*' ! -name '*.pb-c.gcda' -print0 |
  sort -z | xargs -0r gcov -r -s "$root" >gcov.txt 2>/dev/null
awk -F"'" '
  /^File / { file = $2 }
  /^Lines executed:/ && file != "" {
    split($0, part, /[:%]| of /)
    lines = part[4]
    if (file ~ /\.c$/ && file !~ /^\//) {
      hit = part[2] * lines / 100
      printf "  %5.1f %%  %5d lines  %s\n", part[2], lines, file
      all += lines
      ran += hit
    }
    file = ""
  }
  END { if (all) printf "  %5.1f %%  %5d lines  in all\n", 100 * ran / all, all }
' gcov.txt | sort -k4
