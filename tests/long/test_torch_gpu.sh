#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# PyTorch's own job whose hosts never wait for their device: one slow GPU is named by the time on the device,
# which CUPTI reports, or by the communication that NCCL's profiler plugin reports. Without them nobody is named.
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
  for kind in "" --fsdp; do
    # shellcheck disable=SC2086 # an option, or nothing
    torchrun --seconds 3600 --width "$width" $kind
    wait_until 60 "the job to step" job_steps || fail "the job does not run"
    seen "$ranks"
    quiet 12
    rank=$(draw "$ranks")
    fault "compute $rank 1.1"
    expect "$2" "a GPU of PyTorch's job ${kind:---ddp} that is 10 % slower, with $1" compute "$rank"
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
export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_VERSION=2.30
named_with "NCCL's profiler plugin" 40
