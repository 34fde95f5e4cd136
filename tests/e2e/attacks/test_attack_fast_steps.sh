#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job with 17 probed calls in steps of half a millisecond, whatever is let go of it to keep it fast:
# its ranks are known, a slow one is named, and a job beside it is seen to the last call.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

command -v mpirun >/dev/null || skip "mpi: there is no Open MPI here"
setup_attack
healthy_job
healthy_pid=$job_pid healthy_id=$job_id healthy_name=$job_name
children+=("$healthy_pid")
watch_begin

start_fast_job 2 --seconds 600
wait_until 40 "the fast job to step" job_steps || fail "the fast job does not run"
seen 2
sleep 10
[ "$(open_incidents | jq '[.[] | select(.severity != "info")] | length')" -eq 0 ] ||
  complain "a rank of the healthy fast job was accused: $(open_incidents)"
rank=$(draw 2)
fast_fault "compute $rank 1.8"
# What else fires meanwhile is printed: no other rank may be accused, at any time.
slow_is_named() {
  has_incident ".state == \"firing\" and .severity != \"info\" and [.culprits[].rank] == [$rank]"
}
wait_until 180 "a verdict on rank $rank" slow_is_named ||
  complain "the slow rank $rank of the fast job was not named: $(incidents)"
found=$(incidents | jq -c --argjson rank "$rank" \
  '[.[] | select(.severity != "info" and ([.culprits[].rank] | unique) != [$rank])]')
[ "$(jq '[.[] | select(.culprits != [])] | length' <<<"$found")" -eq 0 ] ||
  complain "rank $rank of the fast job was slow, others were accused: $found"
[ "$found" = '[]' ] || echo "beside the verdict: $found"
watch_end "fast steps"
stop "$job_pid"
job_pid=$healthy_pid job_id=$healthy_id job_name=$healthy_name
healthy_job_is_complete "fast steps"
all_held
