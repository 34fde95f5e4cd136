#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A rank whose process ends while the others wait for it is missing. The end of a whole job is no
# incident, also when it is killed.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8 -- --linger 60
seen 8
quiet 6
rank=$(draw 8)
fault "exit $rank 7"
expect 60 "a rank that ends" missing "$rank"
kill_job TERM

start_job train 8
seen 8
quiet 4
kill_job KILL
quiet 15
echo "a job that is killed: silent"
