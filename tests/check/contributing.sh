#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every block of C in CONTRIBUTING.md compiles with the flags of the tree.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v dir="$work" '
  /^```c$/ { n++; file = sprintf("%s/block%d.c", dir, n); printf "" >file; next }
  /^```/ { if (file != "") close(file); file = "" ; next }
  file != "" { print >file }
' CONTRIBUTING.md
blocks=("$work"/block*.c)
[ -e "${blocks[0]}" ] || {
  echo "CONTRIBUTING.md has no block of C"
  exit 1
}
for block in "${blocks[@]}"; do
  gcc -std=gnu17 -D_GNU_SOURCE -I. -Wall -Wextra -Wno-missing-field-initializers -Wno-unused -Werror \
    -fsyntax-only "$block"
done
