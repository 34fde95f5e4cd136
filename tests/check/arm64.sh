#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The kernel side compiles for arm64, too, and finds the words of a call where that machine has them:
# in x0 to x7 and above the stack pointer, which a call does not move.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
report() {
  echo "$1"
  bad=1
}

clang=$(command -v clang clang-19 clang-16 clang-14 | head -n 1) || :
[ -n "$clang" ] || {
  echo "there is no clang"
  exit 1
}
compile() { # compile SOURCE OBJECT
  "$clang" -target bpf -g -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
    -D__TARGET_ARCH_arm64 -isystem bpf -I. -c "$1" -o "$2"
}

for source in bpf/*.bpf.c; do
  compile "$source" "$work/object.o" || report "$source does not compile for arm64"
done

{
  sed -n '/^#include [<"]/p' bpf/call.bpf.c
  cat <<'C'
_Static_assert(REGISTER_WORDS == 8 && STACK_FIRST == 0 && RETURN_SP == 0, "how arm64 calls");
_Static_assert(__builtin_offsetof(struct pt_regs, user_regs.sp) == 248, "after x0 to x30");
C
  for ((i = 0; i < 8; i++)); do
    echo "SEC(\"x$i\") unsigned long word$i(struct pt_regs *ctx) { return register_word(ctx, $i); }"
  done
} >"$work/words.c"
if compile "$work/words.c" "$work/words.o"; then
  for ((i = 0; i < 8; i++)); do
    # r0 = *(u64 *)(r1 + OFFSET): code 0x79, registers 0x10, 16 bits of offset. Then exit.
    want=$(printf '7910%02x00 00000000 95000000 00000000' $((8 * i)))
    found=$(readelf -x "x$i" "$work/words.o" | awk '/^  0x/ { print $2, $3, $4, $5 }')
    [ "$found" = "$want" ] || report "word $i of a call on arm64 is not read from x$i: $found"
  done
else
  report "the words of a call are not those of arm64"
fi
exit $bad
