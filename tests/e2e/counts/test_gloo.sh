#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real PyTorch job over Gloo: calls and bytes per rank, operation and group equal what the script
# counted, of every collective; in the group of all ranks, where the framework broadcasts and gathers by
# itself, of all-reduces. A slow rank is named. The connections between the ranks are links.
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

links() { api "/api/v1/jobs/$job_id/links"; }
# Gloo connects each rank with each.
have_links() {
  links | jq -e '[.items[] | select(.transport == "tcp" and .from.rank != null and .to.rank != null and
    .bytes_per_second > 0 and .latency_seconds > 0 and .retransmit_ratio != null)] |
    (map(.from.rank) | unique | length) == 4 and (map(.to.rank) | unique | length) == 4' >/dev/null
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
  wait_until 60 "links of TCP" have_links || fail "links: $(links)"
  end_job || fail "the job failed"
  wait_until 20 "the ranks to end" ranks_have_ended || fail "$(cat "$work/ranks.json")"
  tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$job_launcher" --world-only all-reduce || fail "the counts differ"
done
