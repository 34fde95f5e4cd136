#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank whose GPU is too hot is named with that cause: NVML states which processes compute on a card, and
# what holds its clock down. A hot GPU of a job that is not slower is no verdict. A rank that ends after an
# XID of its GPU is named with that.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
use_nvml

# heat [CARD]: eight cards with a rank each, of which one is too hot.
heat() {
  local card=0 pid
  for pid in $(ranks_of "$job_pid"); do
    echo "$card most-clock 1980"
    echo "$card pid $pid"
    if [ "$card" = "${1:-}" ]; then
      printf '%s\n' "$card clock 1410" "$card temperature 91" "$card reasons 32"
    else
      printf '%s\n' "$card clock 1980" "$card temperature 60" "$card reasons 0"
    fi
    card=$((card + 1))
  done >"$SIM_NVML.new"
  mv "$SIM_NVML.new" "$SIM_NVML"
}

# card_of RANK: the card of its process.
card_of() {
  local pid
  pid=$(ranks | jq -r ".[] | select(.rank == $1) | .pid")
  awk -v pid="$pid" '$2 == "pid" && $3 == pid { print $1 }' "$SIM_NVML"
}

start_aggregator --resolve-after 10s
start_job train 8
heat
start_agent here --nvml "$library"
seen 8
quiet 6
rank=$(draw 8)
card=$(card_of "$rank")
[ -n "$card" ] || fail "the card of rank $rank is not known"
heat "$card"
quiet 10
fault "compute $rank 1.8"
expect 60 "a rank whose GPU is hot" compute "$rank"
has_cause() { has_incident '.state == "firing" and .cause == "gpu temperature"'; }
wait_until 30 "the cause" has_cause || fail "the cause is not stated: $(open_incidents)"
open_incidents | jq -e '.[0].evidence[] | select(.what == "time per step that temperature held the gpu'"'"'s clock down")' \
  >/dev/null || fail "the evidence has no row of it: $(open_incidents)"
open_incidents | jq -r '.[0].summary'
ranks | jq -e ".[] | select(.rank == $rank) | .gpu_state |
  .clock_mhz == 1410 and .temperature_celsius == 91 and .held_down_by == [\"temperature\"]" >/dev/null ||
  fail "the state of the GPU is not listed: $(ranks | jq -c '.[].gpu_state')"
"$bin/neutracer" jobs "$job_id" --server "http://127.0.0.1:$port" --token-file "$work/token" | grep -q '71% 91C temperature' ||
  fail "the table lacks the state of the GPU"
heat
heal

# A rank that ends after an error of its GPU is named with it.
pid=$(ranks | jq -r ".[] | select(.rank == $rank) | .pid")
echo "xid $card 31" >>"$SIM_NVML"
reported() { ranks | jq -e ".[] | select(.rank == $rank) | .gpu_state.last_xid == 31" >/dev/null; }
wait_until 30 "the XID" reported || fail "the XID is not listed"
# The error that ends it is reported when it is gone, and the driver lists the process no longer.
printf '%s\n' "late-pid $card $pid" "late-xid $card 79" >>"$SIM_NVML"
kill -ABRT "$pid"
failed() { has_incident '.class == "missing" and .cause == "gpu error" and .culprits[0].rank == '"$rank"; }
wait_until 60 "the end of the rank" failed || fail "its end has no cause: $(incidents)"
late() { has_incident 'any(.evidence[]; .what == "xid of the gpu'"'"'s last error" and .value == 79)'; }
wait_until 30 "the late error" late ||
  fail "the error that was reported after the end is missing: $(incidents)"
incidents | jq -r '.[] | select(.class == "missing") | .summary'
kill_job KILL
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
