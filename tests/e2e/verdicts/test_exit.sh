#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank whose process ends while the others wait for it is missing, and so is the one whose end ended
# the job. The end of a whole job is no incident, also when it is killed.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8 -- --linger 60
seen 8
quiet 6
rank=$(draw 8)
fault "exit $rank 7"
expect 60 "a rank that ends" missing "$rank"
kill_job TERM

start_job train 8
seen 8
quiet 4
kill_job KILL
quiet 15
echo "a job that is killed: silent"

command -v mpirun >/dev/null || exit 0
start_job mpi 4
seen 4
sleep 4 # of windows; on a busy machine a rank may really be slow in them
rank=$(draw 4)
kill -KILL "$(ranks | jq ".[] | select(.rank == $rank) | .pid")"
expect 60 "a rank that is killed, and the job with it" missing "$rank"
open_incidents | jq -e '.[0].summary | contains("ended first, by signal 9 (SIGKILL)")' >/dev/null ||
  fail "it does not say how: $(open_incidents)"
wait "$job_pid" || :
job_pid=
