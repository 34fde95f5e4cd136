#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Collectives that are captured once and replayed are counted with each launch of their graph: calls
# and bytes equal what the jobs counted themselves, exactly, in every layout.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here --budget 0 --agent-budget 0 # every call

ranks_have_ended() {
  api "/api/v1/jobs/$1/ranks?limit=1000" >"$work/ranks.json" &&
    [ "$(jq '[.items[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks.json")" -eq "$2" ]
}

run() { # run NAME RANKS [OPTION...]
  local name=$1 ranks=$2 launcher found
  start_job train "${@:2}" --graph
  seen "$ranks"
  launcher=$job_pid
  sleep 3
  end_job || fail "the job '$name' failed"
  wait_until 20 "the ranks of '$name' to end" ranks_have_ended "$job_id" "$ranks" || fail "$(cat "$work/ranks.json")"
  found=$(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$launcher") || fail "$name: the counts differ: $found"
  echo "$name: $found"
}

counter() { awk -v name="neutracer_agent_$1" '$1 == name {print $2}' "$work/agent-here.prom"; }

run "data parallel" 8
run "tensor and pipeline parallel" 8 --tp 2 --pp 2
run "split communicators, sharded" 8 --tp 2 --comms split --shard
[ "$(counter graph_launches_total)" -gt 0 ] || fail "no graph was launched: $(cat "$work/agent-here.prom")"
[ "$(counter graph_launches_unknown_total)" -eq 0 ] || fail "graphs were unknown: $(cat "$work/agent-here.prom")"
