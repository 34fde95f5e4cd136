#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real PyTorch job over Gloo in which one rank collects garbage in each step, over a big heap: that
# rank, class host, and that it was garbage collection. Only the ranks are watched, no other Python.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "torch: python3-torch is not installed"
setup
start_aggregator --resolve-after 10s
start_agent here
start_job gloo 4
seen 4

# metric NAME: what the agent tells of itself.
metric() { sed -n "s/^neutracer_agent_$1 //p" "$work/agent-here.prom"; }
all_are_watched() { [ "$(metric attached_interpreters)" = 4 ]; }
wait_until 40 "the interpreters to be watched" all_are_watched ||
  fail "$(metric attached_interpreters) interpreters are watched"
quiet 6
rank=$(draw 4)
fault "gc $rank 120"
expect 60 "garbage collection" host "$rank"
# What follows may still sharpen it.
is_named() { has_incident '.state == "firing" and .cause == "garbage collection"'; }
wait_until 40 "the cause" is_named || fail "the cause is not named: $(open_incidents)"
heal
end_job || fail "the job failed"
none_is_watched() { [ "$(metric attached_interpreters)" = 0 ]; }
wait_until 20 "the interpreters to be let go" none_is_watched ||
  fail "$(metric attached_interpreters) interpreters are watched"
[ "$(metric interpreter_failures_total)" = 0 ] || fail "interpreters could not be attached"
