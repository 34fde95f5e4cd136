#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Verdicts on faults of one rank's host, in live jobs: named right, abstained, or wrong, with class and cause.
# Ends with 0 if all aims are met.
#
#   JOBS='mpi gloo' FAULTS='quota neighbour loader memory garbage loss' TIMES=10 bench/host.sh
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/host_faults.sh
. tests/real/host_faults.sh

read -ra jobs <<<"${JOBS:-${host_jobs[*]}}"
read -ra faults <<<"${FAULTS:-${host_faults[*]}}"
times=${TIMES:-10} missed=0

run_fault() { # run_fault JOB FAULT
  local rank lacking named=0 abstained=0 wrong=0
  lacking=$(host_lacks "$1" "$2")
  [ -z "$lacking" ] || { printf '%-5s %-10s skipped: %s\n' "$1" "$2" "$lacking"; return; }
  for ((time = 1; time <= times; time++)); do
    host_start "$1" "$2"
    sleep "${LEARN:-12}"
    rank=$(draw ${#host_ranks[@]})
    host_break "$2" "$rank"
    host_judge "$2" "$rank" "${LIMIT:-60}"
    printf '%-5s %-10s %-9s %6s s  %s (rank %s it was)\n' "$1" "$2" "$right" "$seconds" "$verdict" "$rank"
    host_mend
    host_end
    case $right in yes) named=$((named + 1)) ;; abstained) abstained=$((abstained + 1)) ;; *) wrong=$((wrong + 1)) ;; esac
  done
  printf '%-5s %-10s named right %d, abstained %d, wrong %d of %d\n' "$1" "$2" $named $abstained $wrong "$times"
  # A neighbour's effect varies: to abstain is right, to name another is not.
  if [ "$2" = neighbour ]; then [ $wrong = 0 ] || missed=$((missed + 1)); else [ $named = "$times" ] || missed=$((missed + 1)); fi
}

setup
start_aggregator --resolve-after 10s
stay_apart
start_agent here
for job in "${jobs[@]}"; do
  for fault in "${faults[@]}"; do run_fault "$job" "$fault"; done
done
[ "$missed" -eq 0 ]
