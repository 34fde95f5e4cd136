#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow GPU of a job whose hosts never wait for theirs, by the time on the device: N runs with the fault while
# GPUs are measured continuously, N while they are measured for seconds of every thirty, and N healthy runs of
# a minute. Ends with 0 only if every run was right.
#
#   bench/gpu.sh [N]      (20; 20 take an hour and three quarters)
set -euo pipefail
# shellcheck source=bench/verdict_table.sh
. bench/verdict_table.sh

runs=${1:-20}
out=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-bench-XXXXXX")
trap 'rm -rf "$out"' EXIT
wrong=0

series() { # series NAME OPTION...
  local name=$1
  shift
  echo "== $name"
  tests/e2e/runs.sh --gpu --job train --within 40 --runs "$runs" --json "$out/$name" "$@" -- --check none ||
    wrong=$((wrong + 1))
}

series new --fault compute --factor 1.1 --before 12
series windows --fault compute --factor 1.1 --before 100
series healthy --fault none --seconds 60

verdict_table "$out" "$runs" '' new windows healthy && [ "$wrong" -eq 0 ]
