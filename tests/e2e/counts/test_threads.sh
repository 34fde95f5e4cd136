#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Processes that are four ranks each, a thread and a device for every one: all eight are known by their
# numbers, a slow one is named and nobody else of its process, and calls and bytes are exact.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here --budget 0 --agent-budget 0 # every call

ranks_have_ended() {
  ranks >"$work/ranks" && jq '{items: .}' "$work/ranks" >"$work/ranks.json" &&
    [ "$(jq '[.[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks")" -eq 8 ]
}

start_job train 2 --threads 4 -- --no-rank-env --no-layout-env
job_launcher=$job_pid
seen 8
[ "$(ranks | jq -c '[.[].rank] | sort')" = '[0,1,2,3,4,5,6,7]' ] || fail "the ranks are $(ranks)"
quiet 6
rank=$(draw 8)
fault "compute $rank 1.8"
expect 60 "one rank of four in a process" compute "$rank"
heal
end_job || fail "the job failed"
wait_until 20 "the ranks to end" ranks_have_ended || fail "$(cat "$work/ranks.json")"
found=$(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$job_launcher") || fail "the counts differ: $found"
echo "two processes of four ranks: $found"
