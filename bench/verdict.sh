#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Seconds from fault to verdict, and whether it is right: N runs of each fault with a rank and a size
# drawn by chance, and N healthy runs of a minute. Ends with 0 only if every run was right.
#
#   bench/verdict.sh [N]      (20; 20 take about an hour and a half)
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
  tests/e2e/runs.sh --within 10 --runs "$runs" --json "$out/$name" "$@" || wrong=$((wrong + 1))
}

series compute-train --job train --fault compute
series compute-mpi --job mpi --fault compute
series loader-train --job train --fault loader
series healthy-train --job train --fault none --seconds 60
series healthy-mpi --job mpi --fault none --seconds 60

verdict_table "$out" "$runs" ', each verdict within 10 s' compute-train compute-mpi loader-train healthy-train healthy-mpi && [ "$wrong" -eq 0 ]
