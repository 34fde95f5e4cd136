#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Each entry of bench/ablation/entries.txt still applies to detect/, each file of rules has entries, and
# so has each rule that detect/detect.c lists.
set -euo pipefail

bad=0
entries=bench/ablation/entries.txt
bench/ablation/ablate.py --check || bad=1
for file in detect/rules/*.c; do
  grep -qF " | $file | " "$entries" || {
    echo "$file has no entry in $entries"
    bad=1
  }
done
rules=$(sed -n '/^static int (\*const stage\[\])/,/^};/p' detect/detect.c | grep -oE 'nt_[a-z_]*(check|slow|missing)\b') || :
[ -n "$rules" ] || {
  echo "no rule found in stage[] of detect/detect.c"
  bad=1
}
for rule in $rules; do
  file=$(grep -lE "^int $rule\(" detect/rules/*.c) || file=none
  grep -F ': the whole rule |' "$entries" | grep -qE " \| $file \| | \| $rule,|[( ]$rule, nt_" || {
    echo "$rule() has no entry '… the whole rule' in $entries"
    bad=1
  }
done
exit $bad
