#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# PyTorch 2.15 itself on its NCCL backend, over the stand-in libraries: every rank is known, torchrun is
# none, and calls and bytes per rank and operation equal what the script counted.
set -euo pipefail
# shellcheck source=tests/long/torch_job.sh
. tests/long/torch_job.sh

ranks_have_ended() {
  api "/api/v1/jobs/$job_id/ranks" >"$work/ranks.json" &&
    [ "$(jq '[.items[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks.json")" -eq "$ranks" ]
}

start_all
end_job || fail "the job failed"
wait_until 20 "the ranks to end" ranks_have_ended || fail "$(cat "$work/ranks.json")"
steps=$(jq '.steps' "$control/truth/rank-0.json")
[ "$steps" -ge 20 ] || fail "only $steps steps"
counts=$(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$torchrun_pid") || fail "the counts differ: $counts"
echo "$steps steps: $counts"
