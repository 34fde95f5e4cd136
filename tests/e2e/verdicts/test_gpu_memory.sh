#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Device memory: a leak at one of two call sites is named and the weights are not; an allocation that finds no
# memory names who holds it. The first processes that map a library are probed late: theirs is a lower bound.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
export SIM_GPU_MEMORY=$((4 << 30))

# function_at OFFSET: the function of the program to which an allocation returns.
function_at() { addr2line -f -e "$sim/train" "$(printf '0x%x' "$(($1 - 1))")" | head -n 1; }
# memory_of RANK FILTER: of its device memory.
memory_of() { ranks | jq -r ".[] | select(.rank == $1) | .device_memory | $2"; }
has_memory() { [ "$(ranks | jq '[.[] | select(.device_memory != null)] | length')" = "$1" ]; }
are_complete() { [ "$(ranks | jq "[.[] | select(.device_memory.complete == $1)] | length")" = 2 ]; }
leaks() { memory_of "$1" '[.sites[]? | select(.leaks)] | length'; }

start_aggregator
start_agent here
start_job train 2 --weights-mb 1024
seen 2
wait_until 20 "device memory" has_memory 2 || fail "no device memory: $(ranks)"
are_complete false || fail "processes that were probed late are complete: $(ranks | jq -c '.[].device_memory')"
kill_job KILL

start_job train 2 --weights-mb 1024
seen 2
wait_until 20 "complete figures" are_complete true || fail "not complete: $(ranks | jq -c '.[].device_memory')"
live=$(memory_of 0 '[.devices[].live_bytes] | add')
if [ "$live" -lt $((1 << 30)) ] || [ "$live" -ge $((3 << 29)) ]; then
  fail "rank 0 holds $live bytes"
fi
sited() { [ "$(memory_of 0 '.sites[0].file')" = train ]; }
wait_until 30 "the place of a call site" sited || fail "no call site: $(memory_of 0 .sites)"
[ "$(function_at "$(memory_of 0 '.sites[0].offset')")" = hold_weights ] || fail "another site: $(memory_of 0 .sites)"

fault "leak 1 4"
leaking() { [ "$(memory_of 1 '[.sites[]? | select(.leaks and .file == "train")] | length')" = 1 ]; }
wait_until 90 "the leak" leaking || fail "no leak: $(memory_of 1 .)"
offset=$(memory_of 1 '.sites[] | select(.leaks) | .offset')
[ "$(function_at "$offset")" = leak_memory ] || fail "the leak is at $(function_at "$offset")"
[ "$(leaks 0)" = 0 ] || fail "rank 0 leaks: $(memory_of 0 .)"
memory_of 1 .sites

fault "leak 1 64"
ran_out() { [ "$(memory_of 1 .out_of_memory)" -gt 0 ]; }
wait_until 90 "out of memory" ran_out || fail "memory never runs out: $(memory_of 1 .)"
holder() { memory_of 1 '.last_out_of_memory.holder' | jq -e '.rank == 1 and .file == "train" and .live_bytes > 3e9' >/dev/null; }
wait_until 30 "the holder" holder || fail "no holder: $(memory_of 1 .last_out_of_memory)"
offset=$(memory_of 1 '.last_out_of_memory.holder.offset')
[ "$(function_at "$offset")" = leak_memory ] || fail "the holder is $(function_at "$offset")"
[ "$(memory_of 1 '.last_out_of_memory | .call + " " + (.bytes | tostring)')" = "cudaMalloc $((64 << 20))" ] ||
  fail "another failure: $(memory_of 1 .last_out_of_memory)"
[ "$(memory_of 0 .out_of_memory)" = 0 ] || fail "rank 0 is out of memory"

table=$("$bin/neutracer" jobs "$job_id" --server "http://127.0.0.1:$port" --token-file "$work/token")
echo "$table"
grep -q 'MEMORY' <<<"$table" || fail "the table has no memory"
grep -q ' oom' <<<"$table" || fail "the table lacks the failure"
grep -Pzq 'rank 1: out of device memory .*\n  cudaMalloc of 64.0M at train\+0x.*\n  rank 1 held the most' <<<"$table" ||
  fail "the table does not name the holder"
fault
end_job
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
