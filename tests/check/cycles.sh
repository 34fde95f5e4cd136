#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# No cycle of files: x.c, x.h and x_impl.h are one, and no two of these include each other's headers,
# directly or through others. x_y.c without x_y.h is one of its own, which nothing includes.
set -euo pipefail

# shellcheck disable=SC2016 # the fields of awk
loops=$(tests/files.sh '^(agent|aggregator|bpf|cli|common|detect|engine|plugin|proto)/.*\.[ch]$' |
  xargs -r awk '
function noun(file) {
  if (file ~ /[.]bpf[.]c$/)
    return file # a program; its header is another one
  sub("(_impl)?[.][ch]$", "", file)
  return file
}
FNR == 1 {
  from = noun(FILENAME)
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
  match($0, /"[^"]*"/)
  to = noun(substr($0, RSTART + 1, RLENGTH - 2))
  if (from != to)
    print from, to
}
' | { LC_ALL=C tsort 2>&1 >/dev/null || :; } | sed -n 's/^tsort: //p')
[ -z "$loops" ] || {
  printf '%s\n' "$loops" | sed 's/^-: input contains a loop:/a cycle of files:/'
  exit 1
}
