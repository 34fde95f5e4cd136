#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Starts the ranks of a job over Gloo, each on a processor of its own if there are enough. Ends with the
# first of them.
#
#   host_launch.sh RANKS PORT OPTION...
set -euo pipefail
size=$1 port=$2
shift 2
export MASTER_ADDR=${NT_MASTER:-127.0.0.1} MASTER_PORT=$port WORLD_SIZE=$size OMP_NUM_THREADS=1
export GLOO_SOCKET_IFNAME=${NT_INTERFACE:-lo} PYTHONWARNINGS=ignore
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 143' TERM INT
processors=$(nproc)
for ((rank = 0; rank < size; rank++)); do
  pin=()
  [ "$size" -gt "$processors" ] || pin=(taskset -c "$rank")
  RANK=$rank LOCAL_RANK=$rank "${pin[@]}" tests/real/host_rank.sh gloo "$@" &
done
wait -n
