#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs fuzz targets for TIME seconds each, from the committed corpus (tests/fuzz/corpus/NAME). What is
# newly found goes to build/fuzz-corpus, crashing input to build/fuzz-crashes: reduce it, fix, and
# keep it in tests/golden or the corpus. MERGE=1 instead adds to the committed corpus what widens its
# coverage. Counts like tests/run.sh.
set -u

passed=0 failed=0
mkdir -p build/fuzz-crashes
for program; do
  name=${program##*/fuzz_}
  seeds=tests/fuzz/corpus/$name found=build/fuzz-corpus/$name log=build/fuzz-crashes/$name.log
  mkdir -p "$found"
  if [ -n "${MERGE:-}" ]; then
    mkdir -p "$seeds"
    "$program" -merge=1 "$seeds" "$found" || failed=$((failed + 1))
    continue
  fi
  dirs=("$found")
  [ ! -d "$seeds" ] || dirs+=("$seeds")
  if "$program" -max_total_time="${TIME:-60}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="build/fuzz-crashes/$name-" "${dirs[@]}" >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '  %-7s fuzz %s (%s runs)\n' ok "$name" "$runs"
  else
    failed=$((failed + 1))
    printf '  %-7s fuzz %s\n' FAILED "$name"
    grep -v '^#' "$log" | tail -n 40 | sed 's/^/    /'
  fi
done

if [ -n "${NT_RESULTS:-}" ]; then
  echo "$passed $failed 0" >>"$NT_RESULTS"
elif [ -z "${MERGE:-}" ]; then
  echo "$passed passed, $failed failed, 0 skipped"
fi
[ "$failed" -eq 0 ]
