#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# SIGTERM ends agent and aggregator in good order, with exit status 0, whatever they were busy with: a
# job that ran before the agent came, an open incident, nothing.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s

orderly() { # orderly NAME
  [ "$ended" -eq 0 ] || fail "$1 ends with status $ended: $(tail -n 5 "$work"/log/*.log)"
}

for job in train mpi; do
  start_job "$job" 8
  sleep 2
  start_agent here
  seen 8
  quiet 4
  rank=$(draw 8)
  fault "compute $rank 1.8"
  expect 60 "$job, attached late" compute "$rank"
  stop_agent here
  orderly "the agent"
  job_runs || fail "the job ended with the agent"
  # The other job is accused no more when it has ended.
  end_job || fail "the job failed"
done
start_agent here
stop_agent here
orderly "the agent"
stop "$agg_pid"
agg_pid=''
orderly "the aggregator"
echo "SIGTERM: agent and aggregator end with status 0"
