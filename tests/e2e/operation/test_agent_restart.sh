#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Two agents of one machine play two nodes. One is killed and started again in mid-run: its ranks are
# unobserved meanwhile, nobody is accused for that, and the next fault is named right, wherever it is.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
make_cgroup a && a=$cgroup
make_cgroup b && b=$cgroup
start_aggregator --resolve-after 10s
start_agent node-a --cgroup "$a"
start_agent node-b --cgroup "$b"
start_job train 8 -- --cgroup "$a" --cgroup "$b"
seen 8
quiet 6
# are_unobserved RANK...: these and no others, and their node; the rest runs.
are_unobserved() {
  local wanted
  wanted=$(jq -cn '$ARGS.positional | map(tonumber)' --args "$@")
  [ "$(ranks | jq -c '[.[] | select(.state == "unobserved") | .rank] | sort')" = "$wanted" ] &&
    [ "$(ranks | jq '[.[] | select(.state == "running")] | length')" -eq $((8 - $#)) ] &&
    [ "$(api /api/v1/nodes | jq -r '[.items[] | select(.state == "unobserved") | .node] | join(" ")')" = "${1:+node-b}" ]
}

for signal in KILL TERM; do
  stop_agent node-b $signal
  wait_until 30 "ranks 4 to 7 to be unobserved" are_unobserved 4 5 6 7 ||
    fail "without the agent of half of them: $(ranks | jq -c '[.[] | [.rank, .state]]')"
  quiet 2
  start_agent node-b --cgroup "$b"
  wait_until 20 "all ranks to be observed" are_unobserved || fail "not seen again: $(ranks | jq -c '[.[] | [.rank, .state]]')"
  quiet 8
  for rank in $((4 + SRANDOM % 4)) $((SRANDOM % 4)); do
    fault "compute $rank 1.8"
    expect 60 "rank $rank after the agent's SIG$signal" compute "$rank"
    heal
  done
done
end_job || fail "the job failed"
