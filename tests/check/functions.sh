#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# No function has more than 80 lines, from the first line of its signature to its closing brace. A
# function begins with a line in column 0, and `{` and `}` stand in column 0.
set -euo pipefail

# shellcheck disable=SC2016 # the fields of awk
tests/files.sh '^(agent|aggregator|bench|bpf|cli|common|detect|engine|plugin|proto|tests)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } | xargs -r awk '
FNR == 1 {
  signature = begin = 0
}
/^[A-Za-z_]/ && !signature { # on one line, or with its arguments on the next
  signature = FNR
  name = $0
}
/^{$/ && signature {
  begin = signature
}
/^}$/ && begin {
  lines = FNR - begin + 1
  if (lines > 80) {
    match(name, /[a-z_0-9]+\(/)
    print FILENAME ":" begin ": " substr(name, RSTART, RLENGTH) ") has " lines " lines: split it"
    bad = 1
  }
}
/^$/ || /^}/ || /^#/ || /;$/ && !/^[\t ]/ {
  if (!begin || /^}/)
    signature = begin = 0
}
END { exit bad }
'
