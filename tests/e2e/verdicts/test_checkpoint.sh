#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A checkpoint of all ranks accuses nobody. One of rank 0 alone is a note that names it as a slow
# host, and no hang.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8
seen 8
quiet 6
fault "checkpoint all 30000"
quiet 40
[ "$(incidents)" = '[]' ] || fail "a checkpoint of all: $(incidents)"
echo "a checkpoint of all ranks: silent"
fault "checkpoint 0 30001" # another number than before is another checkpoint
wait_until 28 "the note on rank 0" has_incident '.severity == "info" and .class == "host"' || fail "no note: $(incidents)"
[ "$(incidents | jq -c '[.[] | [.severity, .class, (.culprits | map([.kind, .rank]))]]')" = '[["info","host",[["rank",0]]]]' ] ||
  fail "a checkpoint of rank 0: $(incidents)"
quiet 15
echo "a checkpoint of rank 0: $(incidents | jq -r '.[0].summary')"
end_job || fail "the job failed"
