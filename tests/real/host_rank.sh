#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One rank of the job of tests/real/host_job.py: in a network namespace of its own, if there is one. NT_NICE: its
# nice value, for a machine that is busy with other work.
#
#   host_rank.sh gloo|mpi OPTION...
set -euo pipefail
over=$1
shift
rank=${RANK:-${OMPI_COMM_WORLD_RANK:-0}}
enter=()
[ -z "${NT_NETNS:-}" ] || enter=(ip netns exec "$NT_NETNS-$rank")
exec nice -n "${NT_NICE:-0}" "${enter[@]}" /usr/bin/python3 tests/real/host_job.py --over "$over" "$@"
