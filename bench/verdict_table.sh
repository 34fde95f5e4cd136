# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# For the scripts beside: prints what the series of tests/e2e/runs.sh --json gave, and whether the aim is met.

# verdict_table DIR RUNS WHAT NAME...: DIR has a file per series. Succeeds if all runs of all series were right.
verdict_table() {
  local out=$1 runs=$2 what=$3 name right
  shift 3
  echo
  echo 'series            right of  seconds: median  largest'
  for name; do
    touch "$out/$name"
    jq -rs --arg name "$name" --argjson runs "$runs" '
      ([.[].seconds | values] | sort) as $s | [$name, length, $runs,
        if $s == [] then "-", "-" else $s[($s | length) / 2 | floor], $s[-1] end] | map(tostring) | join(" ")' "$out/$name" |
      while read -r a b c d e; do printf '%-17s %5s %2s  %15s  %7s\n' "$a" "$b" "$c" "$d" "$e"; done
  done
  right=$(cat "$out"/* | wc -l)
  echo "aim: $(($# * runs)) of $(($# * runs)) right$what: $([ "$right" -eq $(($# * runs)) ] && echo met || echo missed)"
  [ "$right" -eq $(($# * runs)) ]
}
