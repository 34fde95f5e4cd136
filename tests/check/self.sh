#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The checks can fail: each is shown a small tree with one fault, and must name it.
set -euo pipefail

root=$PWD
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/tests"
cp -r tests/check "$tree/tests/"
cp tests/files.sh "$tree/tests/"
cp LICENSE "$tree/"
bad=0

spdx='/* SPDX-License-Identifier: GPL-3.0-or-later */'

# expect CHECK FILE TEXT WORDS: with FILE holding TEXT the check fails and says WORDS; without, not.
expect() {
  local check=$1 file=$2 text=$3 words=$4 said
  cd "$tree"
  if ! said=$(tests/check/"$check".sh 2>&1); then
    echo "$check.sh fails on a clean tree: $said"
    bad=1
  fi
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$text" >"$file"
  if said=$(tests/check/"$check".sh 2>&1); then
    echo "$check.sh lets pass: $text"
    bad=1
  elif ! grep -qF -e "$words" <<<"$said"; then
    echo "$check.sh does not say '$words' but: $said"
    bad=1
  fi
  rm "$file"
  cd "$root"
}

expect banned agent/x.c 'int f(char *a) { return atoi(a); }' 'atoi() is banned: use nt_num_u64()'
expect banned agent/x.c 'void f(char *a) { sprintf(a, "x"); }' 'agent/x.c:1: sprintf() is banned'
expect banned agent/x.c 'void f(void) { exit(1); }' 'exit() outside main.c'
expect banned proto/x.c 'void f(void) { nt_err(1, "x"); }' 'a library does not log'
expect banned agent/x.c 'void f(int i) { assert(i++ < 3); }' 'assert() with a side effect'
expect spdx agent/x.c 'int x;' 'no SPDX-License-Identifier'
expect spdx plugin/x.c "$spdx" "want 'Apache-2.0'"
expect spdx tests/data/x/y.csv '1,2' 'no LICENSE in its directory'
expect includes detect/x.c '#include <time.h>' 'detect is a pure step'
expect includes detect/x.c '#include "common/buf.h"' 'detect must not include "common/buf.h"'
expect includes agent/x.c '#include "aggregator/x.h"' 'agent must not include'
expect includes aggregator/x.c '#include "agent/x.h"' 'aggregator must not include'
expect includes common/x.c '#include "proto/wire.h"' 'common must not include'
expect includes bpf/x.bpf.c '#include <linux/bpf.h>' 'never <linux/bpf.h>'
expect words docs/x.md 'see /''work/main' 'a path of one machine'
expect words docs/x.md 'TO''DO: later' 'names its issue'

# A name that only contains a banned word, a comment or a string is no call.
cd "$tree"
mkdir -p agent
cat >agent/x.c <<'C'
/* SPDX-License-Identifier: GPL-3.0-or-later */
/* atoi(x) and exit(1) */
int f(struct s *s) { return s->exit(my_atoi("sprintf(a)")); }
C
tests/check/banned.sh || bad=1
exit $bad
