#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes the manual pages of the programs in a directory, and of their commands.
#
#   tests/man.sh build/release/bin docs/man
set -euo pipefail

mkdir -p "$2"
for program in "$1"/neutracer*; do
  name=${program##*/} section=8
  [ "$name" != neutracer ] || section=1
  "$program" --print-man >"$2/$name.$section"
  while IFS= read -r command; do
    "$program" "$command" --print-man >"$2/$name-$command.$section"
  done < <("$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
done
