#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow GPU of a job whose hosts never wait for theirs, by the time on the device: N runs with the fault while
# GPUs are measured continuously, N while they are measured for seconds of every thirty, and N healthy runs of
# a minute. Ends with 0 only if every run was right.
#
#   bench/gpu.sh [N]      (20; 20 take an hour and three quarters)
set -euo pipefail

runs=${1:-20}
out=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-bench-XXXXXX")
trap 'rm -rf "$out"' EXIT
wrong=0
names=(new windows healthy)

series() { # series NAME OPTION...
  local name=$1
  shift
  echo "== $name"
  tests/e2e/runs.sh --gpu --job train --within 40 --runs "$runs" --json "$out/$name" "$@" -- --check none ||
    wrong=$((wrong + 1))
}

series new --fault compute --factor 1.1 --before 12
series windows --fault compute --factor 1.1 --before 100
series healthy --fault none --seconds 60

echo
echo 'series            right of  seconds: median  largest'
for name in "${names[@]}"; do
  touch "$out/$name"
  jq -rs --arg name "$name" --argjson runs "$runs" '
    ([.[].seconds | values] | sort) as $s | [$name, length, $runs,
      if $s == [] then "-", "-" else $s[length / 2 | floor], $s[-1] end] | map(tostring) | join(" ")' "$out/$name" |
    while read -r a b c d e; do printf '%-17s %5s %2s  %15s  %7s\n' "$a" "$b" "$c" "$d" "$e"; done
done
right=$(cat "$out"/* | wc -l)
echo "aim: $((3 * runs)) of $((3 * runs)) right: $([ "$right" -eq $((3 * runs)) ] && echo met || echo missed)"
[ "$wrong" -eq 0 ] && [ "$right" -eq $((3 * runs)) ]
