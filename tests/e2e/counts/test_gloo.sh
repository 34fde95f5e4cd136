#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real PyTorch job over Gloo: calls and bytes per rank, operation and group equal what the script
# counted, of every collective; in the group of all ranks, where the framework broadcasts and gathers by
# itself, of all-reduces. A slow rank is named.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "torch: python3-torch is not installed"
setup
start_aggregator --resolve-after 10s
start_agent here

ranks_have_ended() {
  api "/api/v1/jobs/$job_id/ranks" >"$work/ranks.json" &&
    [ "$(jq '[.items[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks.json")" -eq 4 ]
}

for subgroups in "" --subgroups; do
  # shellcheck disable=SC2086 # none or one
  start_job gloo 4 $subgroups
  job_launcher=$job_pid
  seen 4
  quiet 6
  rank=$(draw 4)
  fault "compute $rank 3"
  # It sleeps in place of computing: no device is busy and no CPU, so the host is what is slow.
  expect 150 "a slow rank of the Gloo job" host "$rank"
  heal
  end_job || fail "the job failed"
  wait_until 20 "the ranks to end" ranks_have_ended || fail "$(cat "$work/ranks.json")"
  tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$job_launcher" --world-only all-reduce || fail "the counts differ"
done
