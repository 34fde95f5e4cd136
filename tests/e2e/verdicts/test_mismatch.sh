#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank that enters a reduction with another size is one side of a mismatch.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8
seen 8
quiet 6
rank=$(draw 8)
fault "mismatch $rank"
wait_until 45 "a verdict on the mismatch" has_incident '.class == "mismatch" and .state == "firing"' ||
  fail "no verdict: $(incidents)"
[ "$(open_incidents | jq --argjson rank "$rank" '[.[] | select(.class == "mismatch") | .culprits[] |
  select(.rank == $rank)] | length')" -eq 1 ] || fail "rank $rank is not among them: $(open_incidents)"
[ "$(open_incidents | jq '[.[] | select(.severity != "info")] | length')" -eq 1 ] || fail "$(open_incidents)"
echo "mismatch of rank $rank: $(open_incidents | jq -r '.[0].summary')"
kill_job TERM
