#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that never wait for their GPU, and no library inside the job: the calls name no slow GPU. NVML does,
# where its driver states that one GPU computes while the others wait, and that temperature holds its clock
# down. A hot GPU of a job that is not slower is no verdict.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
use_nvml
compute_ms=150 # long, beside what a busy machine adds to a step

# The step of the median rank; 0 before there is one.
step_ms() {
  [ -z "$job_id" ] || ranks | jq '[.[].step_seconds | select(. != null) * 1000] | sort | .[length / 2 | floor] // 0'
}

# drive [CARD FACTOR]: eight cards with a rank each, that compute for compute_ms of a step, with tensor cores for
# three eighths of that, and else wait in a kernel on 15 % of the multiprocessors. One is slower by a factor, and hot.
drive() {
  local card=0 pid step
  step=$(step_ms)
  for pid in $(ranks_of "$job_pid"); do
    awk -v card="$card" -v pid="$pid" -v slow="${1:--1}" -v factor="${2:-1}" -v step="$step" \
      -v work="$compute_ms" 'BEGIN {
        if (card == slow) work *= factor
        tensor = 0.375 * work
        step = step < work ? work : step
        printf "%d most-clock 1980\n%d gpm 1\n%d pid %d\n", card, card, card, pid
        printf "%d gpm-2 %d\n", card, 100000 * (0.85 * work + 0.15 * (step - work)) / step
        printf "%d gpm-5 %d\n", card, 100000 * tensor / step
        printf "%d clock %d\n%d reasons %d\n", card, card == slow ? 1980 / factor : 1980, card, card == slow ? 32 : 0
      }'
    card=$((card + 1))
  done >"$SIM_NVML.new"
  mv "$SIM_NVML.new" "$SIM_NVML"
}

card_of() { # card_of RANK
  local pid
  pid=$(ranks | jq -r ".[] | select(.rank == $1) | .pid")
  awk -v pid="$pid" '$2 == "pid" && $3 == pid { print $1 }' "$SIM_NVML"
}

# drive_for SECONDS ARGUMENT...: nobody is accused meanwhile.
drive_for() {
  local end=$((SECONDS + $1)) found
  shift
  while [ $SECONDS -lt $end ]; do
    drive "$@"
    found=$(accusations)
    [ "$found" = '[]' ] || fail "somebody is accused: $found"
    sleep 1
  done
}

start_aggregator --resolve-after 10s
start_job train 8 --check none --compute-ms "$compute_ms"
drive
start_agent here --nvml "$library"
seen 8
drive_for 40
rank=$(draw 8)
card=$(card_of "$rank")
[ -n "$card" ] || fail "the card of rank $rank is not known"
computes() {
  ranks | jq -e ".[] | select(.rank == $rank) | .tier == \"T1\" and .gpu_state.sm_active > 0.3 and
    .gpu_state.tensor_active > 0.1" >/dev/null
}
wait_until 30 "what its GPU computes" computes || fail "it is not listed: $(ranks | jq -c '.[].gpu_state')"

# Another one is hot, and not slow.
drive_for 20 $(((card + 1) % 8)) 1
drive_for 10

fault "compute $rank 1.3"
named() {
  drive "$card" 1.3
  [ "$(accusations)" != '[]' ]
}
wait_until 120 "a verdict on a hot GPU" named || fail "no verdict: $(incidents), $(ranks | jq -c '.[] | [.rank, .step_seconds, .gpu_state.sm_active, .gpu_state.tensor_active]')"
accusations | jq -e "length == 1 and .[0].class == \"compute\" and .[0].cause == \"gpu temperature\" and .[0].tier == \"T1\" and
  (.[0].culprits | map([.kind, .rank])) == [[\"rank\", $rank]]" >/dev/null || fail "rank $rank: found $(accusations)"
accusations | jq -r '.[0].summary'
fault
over() {
  drive
  none_open
}
wait_until 120 "the incident to resolve" over || fail "not resolved: $(open_incidents)"
kill_job KILL
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
