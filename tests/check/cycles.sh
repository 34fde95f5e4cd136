#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# No file includes itself by way of others. A noun is x.h, x.c and x_impl.h together: where one noun
# includes another, that one must not include the first, directly or through a third. Folders in STRICT
# must have no cycle; those of the others are listed.
set -euo pipefail

STRICT=${STRICT:-detect}

# shellcheck disable=SC2016 # the dollars are awk's
tests/files.sh '^(bpf|common|proto|detect|agent|aggregator|cli)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } | sort | xargs -r awk -v strict="$STRICT" '
function noun_of(path) {
  sub("(_impl)?[.]h$|([.]bpf)?[.]c$", "", path)
  return path
}
FNR == 1 {
  noun = noun_of(FILENAME)
  if (!(noun in known)) {
    known[noun] = 1
    nouns[++n] = noun
  }
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
  split($0, part, "\"")
  to = noun_of(part[2])
  if (to != noun && !((noun, to) in edge)) {
    edge[noun, to] = 1
    next_of[noun, ++degree[noun]] = to
  }
}
# Tarjan: the nouns that include each other are on top of the stack when their first is left.
function visit(noun,    i, to, size, line) {
  order[noun] = low[noun] = ++visited
  stack[++depth] = noun
  on[noun] = 1
  for (i = 1; i <= degree[noun]; i++) {
    to = next_of[noun, i]
    if (!(to in known))
      continue
    if (!(to in order)) {
      visit(to)
      if (low[to] < low[noun])
        low[noun] = low[to]
    } else if (on[to] && order[to] < low[noun]) {
      low[noun] = order[to]
    }
  }
  if (low[noun] != order[noun])
    return
  do {
    to = stack[depth--]
    on[to] = 0
    size++
    line = " " to line
  } while (to != noun)
  if (size > 1)
    report(line)
}
function report(line,    i, folder, is_strict) {
  split(strict, folder, " ")
  for (i in folder)
    is_strict = is_strict || index(line, " " folder[i] "/") > 0
  print (is_strict ? "cycle:" : "cycle (not refused yet):") line
  bad = bad || is_strict
}
END {
  for (i = 1; i <= n; i++)
    if (!(nouns[i] in order))
      visit(nouns[i])
  exit bad
}
'
