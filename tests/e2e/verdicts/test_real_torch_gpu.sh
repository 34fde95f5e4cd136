#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# PyTorch's DistributedDataParallel and FSDP over the stand-in libraries, whose hosts never wait for their
# device: a GPU that is 10 % slower is named by the time on the device, as CUPTI and as NCCL's profiler plugin
# report it, one kind of job with each. tests/long/test_torch_gpu.sh has the others, and what must name nobody.
set -euo pipefail
# shellcheck source=tests/long/torch_job.sh
. tests/long/torch_job.sh

options=(--ahead)
start_aggregator --resolve-after 10s

with_cupti
named_with CUPTI 25 fsdp
without_libraries
with_nccl_plugin 2.30
export NCCL_ALLGATHERV_ENABLE=0 # NCCL fuses the broadcasts at the start of a job, and then mixes up times
named_with "NCCL's profiler plugin" 40 ddp
