#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job whose calls are seen in slices hangs: that is told, and none of its ranks is named that waits.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

command -v mpirun >/dev/null || skip "mpi: there is no Open MPI here"
setup_attack --budget 0.1 # so that it is sampled however slow this machine is

sampled() { [ "$(ranks | jq '[.[] | select(.sampled < 1)] | length')" -ge "$1" ]; }

start_fast_job 2 --seconds 900
wait_until 40 "the fast job to step" job_steps || fail "the fast job does not run"
seen 2
wait_until 60 "its ranks to be sampled" sampled 2 || fail "not sampled: $(ranks)"
sleep 20
[ "$(open_incidents | jq '[.[] | select(.severity != "info")] | length')" -eq 0 ] ||
  complain "a rank of the healthy fast job was accused: $(open_incidents)"
rank=$(draw 2)
begin=$(now_ms)
fast_fault "hang $rank"
if wait_until 120 "a verdict on the hang" has_incident '.state == "firing" and .class == "hang"'; then
  echo "told after $(($(now_ms) - begin)) ms: $(open_incidents | jq -r '.[].summary')"
else
  complain "the hang was not told"
fi
sleep 20
found=$(incidents | jq -c --argjson rank "$rank" \
  '[.[] | select(.severity != "info") | .culprits[] | select(.kind == "rank" and .rank != $rank)] | length')
[ "$found" -eq 0 ] || complain "rank $rank hangs, and others were accused: $(incidents)"
fast_fault
wait_until 60 "the job to go on" has_incident '.state == "resolved" and .class == "hang"' ||
  complain "the hang is not over: $(incidents)"
all_held
