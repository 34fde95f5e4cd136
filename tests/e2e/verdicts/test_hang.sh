#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank that enters no further collective is the hang's laggard.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
for job in train mpi; do
  start_job "$job" 8
  seen 8
  quiet 6
  rank=$(draw 8)
  fault "hang $rank"
  expect 60 "$job: a rank that hangs" hang "$rank"
  heal
  end_job || fail "the job failed"
done
