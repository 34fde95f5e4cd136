#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Calls and bytes per rank, operation and group equal what the jobs counted themselves, exactly, in
# every layout; and no launcher is a rank.
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

compare() { # compare NAME RANKS
  local name=$1 ranks=$2 found
  wait_until 20 "the ranks of '$name' to end" ranks_have_ended "$job_id" "$ranks" || fail "$(cat "$work/ranks.json")"
  found=$(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$job_launcher") || fail "$name: the counts differ: $found"
  echo "$name: $found"
}

run() { # run NAME KIND RANKS [OPTION...]
  local name=$1
  start_job "${@:2}"
  job_launcher=$job_pid
  wait_until 20 "the ranks of '$name' to be seen" job_is_seen "$3" || fail "$(api /api/v1/jobs)"
  sleep 3
  end_job || fail "the job '$name' failed"
  compare "$name" "$3"
}

run "mpi" mpi 8
run "mpi, split in halves" mpi 8 --subgroups
run "tensor and pipeline parallel" train 8 --tp 2 --pp 2
run "split communicators, sharded" train 8 --tp 2 --comms split --shard
# Last, for without it all others have passed.
[ -x "$sim/mpich_train" ] || skip "mpi: there is no MPICH here"
run "mpich" mpich 4
run "mpich, split in halves" mpich 4 --subgroups
