#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Without RANK, WORLD_SIZE, LOCAL_RANK and the layout in the environment, and with ranks in another
# order than processes, the verdict is the same.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
for layout in "" "--tp 2 --check step"; do
  # shellcheck disable=SC2086 # a list of options
  start_job train 8 $layout -- --no-rank-env --no-layout-env --permute $((1 + SRANDOM % 1000))
  seen 8
  quiet 6
  rank=$(draw 8)
  fault "compute $rank 1.8"
  if [ -z "$layout" ]; then
    expect 20 "permuted ranks" compute "$rank"
  else
    # Tensor-parallel partners wait for each other inside a step: at this tier nobody may be named wrongly.
    sleep 15
    [ "$(open_incidents | jq --argjson rank "$rank" '[.[] | select(.severity != "info") | .culprits[] |
      select(.rank != $rank)] | length')" -eq 0 ] || fail "with tensor parallelism: $(open_incidents)"
    echo "permuted ranks with tensor parallelism: nobody is named wrongly"
  fi
  heal
  end_job || fail "the job failed"
done
