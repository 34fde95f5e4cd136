#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Verdicts on programs that were not written for tests: who is named, and after how many seconds.
# Two ranks each; all cases of a program are one job, until it is killed. Ends with 0 if all aims are met.
#
#   healthy   silent for MINUTES
#   held      one rank is stopped for 20 of every 100 ms: named within 15 s
#   stopped   one rank is stopped: a hang, named within 25 s
#   killed    one rank is killed: named
#
#   PROGRAMS='lammps mpich mpi4py ddp fsdp' CASES='healthy held stopped killed' MINUTES=10 bench/real.sh
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/programs.sh
. tests/real/programs.sh

read -ra programs <<<"${PROGRAMS:-${real_programs[*]}}"
read -ra cases <<<"${CASES:-${real_cases[*]}}"
minutes=${MINUTES:-10}
declare -A limit=([healthy]=$((minutes * 60)) [held]=60 [stopped]=40 [killed]=40)
declare -A aim=([healthy]=$((minutes * 60)) [held]=15 [stopped]=25 [killed]=40)
missed=0

row() { printf '%-8s %-8s %-5s %8s  %s\n' "$@"; }

run_case() { # run_case PROGRAM CASE
  local met=missed
  if [ -z "$job_pid" ]; then
    real_start "$1"
    sleep 10
  fi
  real_case "$2" "${limit[$2]}"
  if [ "$right" = yes ] && awk -v s="$seconds" -v aim="${aim[$2]}" 'BEGIN { exit s > aim }'; then met=met; fi
  [ $met = met ] || missed=$((missed + 1))
  row "$1" "$2" "$met" "$seconds" "$verdict"
  [ "$2" = killed ] || wait_until 90 "the incident to resolve" none_open || real_end
}

setup
start_aggregator --resolve-after 10s
stay_apart
start_agent here
row program case aim seconds verdict
for program in "${programs[@]}"; do
  lacking=$(real_lacks "$program")
  [ -z "$lacking" ] || { row "$program" - - - "skipped: $lacking"; continue; }
  for case in "${cases[@]}"; do run_case "$program" "$case"; done
  real_end
done
[ "$missed" -eq 0 ]
