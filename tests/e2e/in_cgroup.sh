#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# in_cgroup.sh RANKS DIR DIR PROGRAM...: runs an MPI rank in the cgroup of its half of the ranks.
set -euo pipefail
dir=$2
[ $((OMPI_COMM_WORLD_RANK * 2)) -lt "$1" ] || dir=$3
echo $$ >"$dir/cgroup.procs"
exec "${@:4}"
