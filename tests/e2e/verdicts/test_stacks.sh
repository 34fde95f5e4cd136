#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank of a PyTorch job stays away from a collective: the incident has the stack of the Python function
# in which it stays, and that of a rank that waits in the collective.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "torch: python3-torch is not installed"
setup
start_aggregator --resolve-after 10s
start_agent here
start_job gloo 3
seen 3
quiet 4
rank=$(draw 3)
line=$(grep -n 'now = faults(path, rank)' tests/sim/ddp_gloo.py | tail -n 1 | cut -d: -f1)
fault "hang $rank"
wait_until 90 "the hang" has_incident '.class == "hang" and .state == "firing"' || fail "no hang: $(incidents)"
id=$(open_incidents | jq -r '.[] | select(.class == "hang") | .id')

stacks() { api "/api/v1/incidents/$id" | jq -c '.stacks'; }
# The lines around the sleep of 10 ms are short: it is in one of them.
names_function() {
  stacks | jq -e --argjson rank "$rank" --argjson line "$line" 'any(.[];
    .culprit and .main and .rank == $rank and .gc_running == false and any(.frames[];
      .function == "wait_out_hang" and (.file | endswith("tests/sim/ddp_gloo.py")) and
      .line >= $line - 3 and .line <= $line))' >/dev/null
}
has_peer() {
  stacks | jq -e --argjson rank "$rank" 'any(.[]; .main and (.culprit | not) and .rank != $rank and
    any(.frames[]; .function == "all_reduce" or .function == "backward" or .function == "main"))' >/dev/null
}
wait_until 30 "the stack of rank $rank" names_function || fail "stacks: $(stacks)"
wait_until 30 "the stack of a peer" has_peer || fail "stacks: $(stacks)"
"$bin/neutracer" incidents "$id" --server "http://127.0.0.1:$port" --token-file "$work/token" >"$work/out/incident"
grep -q 'wait_out_hang' "$work/out/incident" || fail "the command shows no stack: $(cat "$work/out/incident")"
[ "$(grep -c '^neutracer_agent_stacks_' "$work/agent-here.prom")" -gt 0 ] || fail "no metrics of stacks"
end_job || fail "the job failed"
