#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# In place of ssh for mpirun: runs a command in the network namespace that has the address, under a host name of
# its own. The rank with address 10.77.R.2 is in the namespace $NT_NETNS-R.
#
#   host_rsh.sh ADDRESS COMMAND...
set -euo pipefail
if [ "$1" = --named ]; then
  hostname "$2"
  shift 2
  eval "$*"
  exit
fi
rank=${1#10.77.}
rank=${rank%%.*}
shift
exec ip netns exec "$NT_NETNS-$rank" unshare --uts "$0" --named "host-$rank" "$@"
