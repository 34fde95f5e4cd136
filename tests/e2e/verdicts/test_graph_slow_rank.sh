#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# In a job that replays its collectives from graphs a slow rank is named, and so is one that stops.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here
start_job train 8 --graph
seen 8
quiet 6
rank=$(draw 8)
fault "compute $rank 1.6"
expect 60 "a slow rank" compute "$rank"
heal
rank=$(draw 8)
fault "hang $rank"
expect 60 "a rank that stops" hang "$rank"
kill_job TERM
