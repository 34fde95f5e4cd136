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

# named_with WHAT SECONDS
named_with() {
  local kind rank
  # The hosts of FSDP take some 50 ms a step on a machine of two cores: the GPU must take longer.
  for kind in "" "--fsdp --compute-ms 120"; do
    # An agent measures without a pause for five minutes in all (gpu_schedule.h): each job has its own.
    stop_agent here
    start_agent here
    # shellcheck disable=SC2086 # options, or nothing
    torchrun --seconds 3600 --width "$width" $kind
    wait_until 60 "the job to step" job_steps || fail "the job does not run"
    seen "$ranks"
    quiet 12
    rank=$(draw "$ranks")
    fault "compute $rank 1.1"
    expect "$2" "a GPU of PyTorch's job ${kind:---ddp} (NCCL ${SIM_NCCL_VERSION:-as it is}) that is 10 % slower, with $1" compute "$rank"
    heal
    quiet 10
    end_job || fail "the job failed"
  done
}

# PyTorch names another release of CUPTI, for which there is a dummy.
export NEUTRACER_CUPTI_LIBRARY=$PWD/build/sim/lib/libcupti.so.12
export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so
named_with CUPTI 25

unset CUDA_INJECTION64_PATH
export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_VERSION=2.28
named_with "NCCL's profiler plugin" 40
export SIM_NCCL_VERSION=2.30 NCCL_ALLGATHERV_ENABLE=0
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
