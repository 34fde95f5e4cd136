#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# PyTorch's own job whose hosts never wait for their device: one slow GPU is named by the time on the device,
# which CUPTI reports, or by the communication that NCCL's profiler plugin reports. Without them nobody is named,
# nor with times of NCCL that contradict each other.
set -euo pipefail
# shellcheck source=tests/long/torch_job.sh
. tests/long/torch_job.sh

options=(--ahead)
start_all
fault "compute $(draw "$ranks") 1.3"
for ((i = 0; i < 25; i++)); do
  sleep 1
  [ "$(incidents | jq '[.[] | select(.severity != "info")] | length')" -eq 0 ] || fail "without the library: $(incidents)"
done
echo "without the library nobody is named: $(incidents | jq -r '[.[].summary] | join("; ")')"
fault
end_job || fail "the job failed"

with_cupti
named_with CUPTI 25
without_libraries

with_nccl_plugin 2.28
named_with "NCCL's profiler plugin" 40
with_nccl_plugin 2.30
export NCCL_ALLGATHERV_ENABLE=0
named_with "NCCL's profiler plugin" 40

# NCCL fuses the broadcasts with which DistributedDataParallel begins, and then mixes up times.
unset NCCL_ALLGATHERV_ENABLE
stop_agent here
start_agent here
torchrun --seconds 3600 --width "$width"
wait_until 60 "the job to step" job_steps || fail "the job does not run"
seen "$ranks"
are_given_up() { [ "$(awk '$1 == "neutracer_agent_gpu_processes_refused_total" { print $2 }' "$work/agent-here.prom")" = "$ranks" ]; }
wait_until 40 "the end of the measurement" are_given_up || fail "times of the wrong collectives are used"
grep -q "NCCL_ALLGATHERV_ENABLE=0" "$work/log/agent-here.log" || fail "the log does not say what to do"
fault "compute $(draw "$ranks") 1.1"
for ((i = 0; i < 15; i++)); do
  sleep 1
  [ "$(incidents | jq '[.[] | select(.state == "firing" and .severity != "info")] | length')" -eq 0 ] ||
    fail "with times of the wrong collectives: $(incidents)"
done
fault
end_job || fail "the job failed"
echo "with times that contradict each other nobody is named, and the log says so"
