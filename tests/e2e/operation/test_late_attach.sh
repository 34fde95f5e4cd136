#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent comes to a job that runs already: a fault afterwards is named right. Killed with
# SIGKILL, it leaves the job neither failed nor stalled.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
steps() { tail -n 1 "$job_log" | sed -n 's/^step \([0-9]*\),.*/\1/p'; }
for job in mpi train; do
  start_job "$job" 8
  sleep 2
  start_agent here
  seen 8
  quiet 6
  rank=$(draw 8)
  fault "compute $rank 1.8"
  expect 60 "$job, attached late" compute "$rank"
  heal
  stop_agent here KILL
  before=$(steps)
  sleep 3
  [ "$(steps)" -ge $((before + 8)) ] || fail "$job: from $before to $(steps) steps in 3 s without the agent"
  end_job || fail "$job failed after the agent was killed"
  echo "$job: goes on when the agent is killed"
done
