#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# As test_gpu_cause.sh on a node with AMD's GPUs, whose runtime (HIP) is not probed. AMD SMI states which processes
# have a queue on a card, and in which part of the time temperature held its clock down. A rank of an MPI job is
# named with that cause. Of a job that communicates by RCCL the state of the GPUs is listed.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
library=$PWD/$sim/lib/libamd_smi.so.26
[ -e "$library" ] || fail "there is no '$library' (make sim)"
export SIM_AMDSMI=$work/amdsmi
hot=$work/hot # the card that is too hot
: >"$hot"

# The stand-ins for NCCL and CUDA by the names that AMD's libraries have.
mkdir "$work/rocm"
rename() { # rename NAME AMDS_NAME
  cp "$sim/lib/$1" "$work/rocm/$2"
  ln -s "$2" "$work/rocm/$1"
}
rename libnccl.so.2 librccl.so.1
rename libcudart.so.13 libamdhip64.so.7
rename libcuda.so.1 libhsa-runtime64.so.1

# Eight cards with a rank each: of 1000 cycles of the hot one's firmware 900 are above its limit.
tables() {
  local card pid cycles=0 limit=0 is_hot
  while :; do
    card=0
    is_hot=$(<"$hot")
    cycles=$((cycles + 1000))
    [ -z "$is_hot" ] || limit=$((limit + 900))
    for pid in $(ranks_of "$1"); do
      printf '%s\n' "$card most-clock 2100" "$card pid $pid" "$card cycles $cycles" "$card gfx 90"
      if [ "$card" = "$is_hot" ]; then
        printf '%s\n' "$card clock 1410" "$card hotspot 105" "$card limit-socket $limit"
      else
        printf '%s\n' "$card clock 2100" "$card hotspot 60" "$card limit-socket 0"
      fi
      card=$((card + 1))
    done >"$SIM_AMDSMI.new"
    mv "$SIM_AMDSMI.new" "$SIM_AMDSMI"
    sleep 0.5
  done
}

# card_of RANK: the card of its process.
card_of() {
  local pid
  pid=$(ranks | jq -r ".[] | select(.rank == $1) | .pid")
  awk -v pid="$pid" '$2 == "pid" && $3 == pid { print $1 }' "$SIM_AMDSMI"
}

is_listed() {
  ranks | jq -e ".[] | select(.rank == $rank) | .gpu_state |
    .clock_mhz == 1410 and .temperature_celsius == 105 and .held_down_by == [\"temperature\"]" >/dev/null
}

start_aggregator --resolve-after 10s
LD_LIBRARY_PATH=$work/rocm start_job mpi 8 --compute-ms 40
tables "$job_pid" &
children+=("$!")
start_agent here --nvml none --amdsmi "$library"
seen 8
quiet 6
rank=$(draw 8)
card=$(card_of "$rank")
[ -n "$card" ] || fail "the card of rank $rank is not known"
echo "$card" >"$hot"
quiet 10
fault "compute $rank 1.8"
expect 60 "a rank whose GPU is hot" compute "$rank"
has_cause() { has_incident '.state == "firing" and .cause == "gpu temperature"'; }
wait_until 30 "the cause" has_cause || fail "the cause is not stated: $(open_incidents)"
open_incidents | jq -r '.[0].summary'
is_listed || fail "the state of the GPU is not listed: $(ranks | jq -c '.[].gpu_state')"
kill_job TERM
stop "${children[0]}"
children=()

: >"$hot"
LD_LIBRARY_PATH=$work/rocm start_job train 8
tables "$job_pid" &
children+=("$!")
seen 8
ranks | jq -e 'all(.[]; .operations[0].library == "rccl" and .uses_gpu == false)' >/dev/null ||
  fail "the job is not one of RCCL: $(ranks | jq -c '.[0]')"
rank=$(draw 8)
card_of "$rank" >"$hot"
wait_until 30 "the state of the GPU" is_listed || fail "it is not listed: $(ranks | jq -c '.[].gpu_state')"
kill_job KILL
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
