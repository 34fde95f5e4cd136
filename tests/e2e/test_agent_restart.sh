#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Two agents of one machine play two nodes. One is killed and started again in mid-run: nobody is
# accused for that, and the next fault is named right, wherever it is.
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
for signal in KILL TERM; do
  stop_agent node-b $signal
  quiet 4
  start_agent node-b --cgroup "$b"
  quiet 8
  for rank in $((4 + SRANDOM % 4)) $((SRANDOM % 4)); do
    fault "compute $rank 1.8"
    expect 20 "rank $rank after the agent's SIG$signal" compute "$rank"
    heal
  done
done
end_job || fail "the job failed"
