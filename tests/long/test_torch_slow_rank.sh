#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow rank of PyTorch's own job on NCCL is named: one with a slow device, one whose data come late.
set -euo pipefail
# shellcheck source=tests/long/torch_job.sh
. tests/long/torch_job.sh

start_all
rank=$(draw "$ranks")
fault "compute $rank 1.8"
expect 25 "a slow device of PyTorch's job" compute "$rank"
heal
rank=$(draw "$ranks")
fault "loader $rank 40"
expect 25 "late data of PyTorch's job" host "$rank"
heal

end_job || fail "the job failed"
