#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One rank of a job in its pod, with the variables that a training operator sets. What a real job
# would fetch from MASTER_ADDR, the id of its first communicator, is here made of the job's name.
#
#   rank.sh [OPTION...]   of train
set -euo pipefail

export RANK=${RANK:-${JOB_COMPLETION_INDEX:?}} WORLD_SIZE=${WORLD_SIZE:?} LOCAL_RANK=${LOCAL_RANK:-0}
id=''
for part in 1 2 3 4; do id+=$(printf '%s' "$part ${JOB_ID:?}" | sha256sum | cut -c1-64); done
exec /opt/rank/train --id "$id" "$@"
