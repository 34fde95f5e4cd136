#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Pauses as for garbage collection on one rank: that rank, class host. Of C code nothing tells why
# it paused; test_gc_python.sh has collections that are named.
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
fault "gc $rank 120"
expect 60 "garbage collection" host "$rank"
heal
end_job || fail "the job failed"
