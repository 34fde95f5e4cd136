#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow network card stretches the transfers of everybody: class network, and no rank is accused of
# it without times per peer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8 --check step --gradient-mb 1024
seen 8
quiet 8
for factor in 5 2; do
  fault "nic $(draw 8) $factor"
  wait_until 30 "a verdict on the network" has_incident '.class == "network" and .state == "firing"' ||
    fail "$factor times as slow: no verdict: $(incidents)"
  [ "$(incidents | jq '[.[] | .culprits[] | select(.kind == "rank" or .kind == "node")] | length')" -eq 0 ] ||
    fail "somebody is accused: $(incidents)"
  echo "a card $factor times as slow: $(open_incidents | jq -r '.[0].summary')"
  heal
done
end_job || fail "the job failed"
