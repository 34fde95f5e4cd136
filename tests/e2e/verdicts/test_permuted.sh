#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Without RANK, WORLD_SIZE, LOCAL_RANK and the layout in the environment, and with ranks in another
# order than processes, the verdict is the same. An MPI job is known without what its launcher says of
# ranks in the environment.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
start_aggregator --resolve-after 10s
start_agent here

# named WHAT CLASS FAULT [VALUE]: on a rank drawn by chance, which is named, and nobody else.
named() {
  local rank
  seen 8
  quiet 6
  rank=$(draw 8)
  fault "$3 $rank $4"
  expect 60 "$1" "$2" "$rank"
  heal
}

permuted=(--no-rank-env --no-layout-env --permute)
start_job train 8 -- "${permuted[@]}" $((1 + SRANDOM % 1000))
named "permuted ranks" compute compute 1.8
end_job || fail "the job failed"

# Tensor-parallel partners wait for each other inside a step: who computes slowly cannot be seen there, and
# so nobody may be named, least of all another. Whose host is slow can be seen.
start_job train 8 --tp 2 --check step -- "${permuted[@]}" $((1 + SRANDOM % 1000))
named "permuted ranks, tensor parallel" host loader 60
rank=$(draw 8)
fault "compute $rank 1.8"
sleep 10
[ "$(open_incidents | jq --argjson rank "$rank" '[.[] | select(.severity != "info") | .culprits[] |
  select(.rank != $rank)] | length')" -eq 0 ] || fail "with tensor parallelism: $(open_incidents)"
heal
end_job || fail "the job failed"

unset=()
for variable in RANK SIZE LOCAL_RANK LOCAL_SIZE NODE_RANK; do unset+=(-u "OMPI_COMM_WORLD_$variable"); done
start_job mpi 8 -- env "${unset[@]}" -u OMPI_UNIVERSE_SIZE
named "MPI ranks that no variable tells" compute compute 1.8
end_job || fail "the job failed"
