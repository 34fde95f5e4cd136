#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What one pass of the detection costs by the number of ranks: bench/detect.c, for jobs whose ranks are
# all of one role and for jobs of 4 tensor places and 5 stages; the space detector's DBSCAN beside
# scikit-learn's on the same input in the same run, and the pass beside a bare walk over as many bytes and
# what sysTrace was measured to take.
#
#   bench/detect.sh [RANKS...]      (multiples of 20; 1000 3000 10000 30000 100000)
#
# PASSES: how many of each kind the median is taken of (15). CPU milliseconds of one thread. Memory comes
# in large pages, as the aggregator's does (deploy/systemd).
set -euo pipefail

program=build/bench/detect passes=${PASSES:-15}
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(1000 3000 10000 30000 100000)
work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1

for ranks in "${sizes[@]}"; do
  read -r _ one one_open one_longest dbscan eps pairs walk < <("$program" "$ranks" 1 1 "$passes" "$work/values")
  read -r _ many many_open many_longest _ < <("$program" "$ranks" 4 5 "$passes")
  theirs=$(/usr/bin/python3 bench/detect_sklearn.py "$work/values" "$ranks" "$eps" "$pairs")
  echo "$ranks $one $one_open $one_longest $many $many_open $many_longest $dbscan $theirs $walk"
done >"$work/table"
read -r _ _ small _ < <("$program" 1024 1 1 "$passes")

awk -v small="$small" -v systrace_s=15.6 '
function judge(is_met) { return is_met ? "met" : "missed" }
function most(a, b) { return a > b ? a : b }
function growth(from, to) { return log(to / from) / log(ranks / first_ranks) }
BEGIN {
  format = "%7s  %8s %9s %8s  %8s %9s %8s  %8s %8s %12s %6s %s\n"
  printf format, "ranks", "one role", "incident", "longest", "20 roles", "incident", "longest", "walk", "DBSCAN", "scikit-learn", "ratio", "labels"
}
{
  ranks = $1
  one = most($2, $3)
  many = most($5, $6)
  if (NR == 1) {
    first_ranks = ranks
    first_one = one
    first_many = many
    first_walk = $11
  }
  printf format, ranks, $2, $3, $4, $5, $6, $7, $11, sprintf("%.3f", $8), $9, ($9 == "-" ? "-" : sprintf("%.0f", $9 / $8)), $10
  wrong += $10 == "differ"
  walk = $11
}
END {
  worst = most(one, many)
  printf "a pass over %d ranks takes %.0f ms on one core; aim: under 100 ms, %s\n", ranks, worst, judge(worst < 100)
  if (ranks > first_ranks) {
    g = most(growth(first_one, one), growth(first_many, many))
    n_log_n = log(ranks * log(ranks) / (first_ranks * log(first_ranks))) / log(ranks / first_ranks)
    printf "it grows by the power %.2f from %d ranks on (one role %.2f, 20 roles %.2f); aim: at most %.2f, as n log n does, %s\n",
      g, first_ranks, growth(first_one, one), growth(first_many, many), n_log_n, judge(g <= n_log_n)
    printf "a bare walk over the same bytes grows by the power %.2f\n", growth(first_walk, walk)
  }
  printf "a pass over 1,024 ranks takes %.2f ms; sysTrace took %.1f s of CPU to detect, and 115 s to load: %.0f times as long without loading\n",
    small, systrace_s, systrace_s * 1000 / small
  if (wrong)
    print "DBSCAN and scikit-learn differ in their clusters"
  exit wrong > 0
}' "$work/table"
