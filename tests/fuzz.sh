#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs fuzz targets for TIME seconds each, from the committed corpus (tests/fuzz/corpus/NAME). New
# inputs go to build/fuzz-corpus, crashing ones to build/fuzz-crashes: reduce, fix, and keep them in
# tests/golden or the corpus. MERGE=1 instead adds inputs that widen coverage to the committed one.
# cost_test is no target: it exceeds each bound of tests/fuzz/lib/cost.h. Counts like tests/run.sh.
set -u

passed=0 failed=0
mkdir -p build/fuzz-crashes

# Prints the input and the bound it violates.
exceeds() {
  local log=build/fuzz-crashes/cost_test.log
  tr '\0' "$1" < <(head -c "$2" /dev/zero) >build/fuzz-crashes/cost_test
  "$program" build/fuzz-crashes/cost_test >"$log" 2>&1
  if [ -z "$3" ]; then
    grep -q '^cost: at most' "$log" && return
  else
    grep -q "cost_test: an input of $2 bytes cost [0-9]* $3; its bound is" "$log" && return
  fi
  echo "    a cost in '$3' is not as it should be:"
  tail -n 20 "$log"
  return 1
}

test_cost() {
  exceeds x 1000 '' && exceeds p 1 'bytes of memory at once' &&
    exceeds t 1 'bytes of memory in total' && exceeds s 3000 steps && exceeds l 30000 steps &&
    exceeds c 1 'ns of processor time'
}

lost() { # lost NAME
  printf '  %-7s fuzz %s\n' FAILED "$1"
  [ -z "${NT_RESULTS:-}" ] || echo "fuzz $1" >>"$NT_RESULTS/failed"
}

for program; do
  name=${program##*/}
  if [ "$name" = cost_test ]; then
    [ -z "${MERGE:-}" ] || continue
    if test_cost; then
      passed=$((passed + 1))
      printf '  %-7s fuzz cost\n' ok
    else
      failed=$((failed + 1))
      lost cost
    fi
    continue
  fi
  name=${name#fuzz_}
  seeds=tests/fuzz/corpus/$name found=build/fuzz-corpus/$name log=build/fuzz-crashes/$name.log
  mkdir -p "$found"
  if [ -n "${MERGE:-}" ]; then
    mkdir -p "$seeds"
    "$program" -merge=1 "$seeds" "$found" || failed=$((failed + 1))
    continue
  fi
  dirs=("$found")
  [ ! -d "$seeds" ] || dirs+=("$seeds")
  # Inputs of 64 KiB reveal non-linear costs; fast inputs are run more often. The bounds of cost.h
  # find what is slow; the timeout is of wall clock and only ends a loop that has no end.
  if "$program" -max_total_time="${TIME:-60}" -max_len=65536 -entropic_scale_per_exec_time=1 \
    -timeout=120 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz-crashes/$name-" "${dirs[@]}" >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    cost=$(sed -n 's/^cost: /; /p' "$log")
    printf '  %-7s fuzz %s (%s runs%s)\n' ok "$name" "$runs" "$cost"
  else
    failed=$((failed + 1))
    lost "$name"
    grep -v '^#' "$log" | tail -n 40 | sed 's/^/    /'
  fi
done

if [ -n "${NT_RESULTS:-}" ]; then
  echo "$passed $failed 0" >>"$NT_RESULTS/sum"
elif [ -z "${MERGE:-}" ]; then
  echo "$passed passed, $failed failed, 0 skipped"
fi
[ "$failed" -eq 0 ]
