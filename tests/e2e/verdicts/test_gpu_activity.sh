#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that never wait for their GPU, and no library inside the job: the calls name no slow GPU. NVML does,
# where its driver states that one GPU computes while the others wait, and that temperature holds its clock
# down. A hot GPU of a job that is not slower is no verdict.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/e2e/gpu_activity.sh
. tests/e2e/gpu_activity.sh

setup
use_nvml

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
