#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Faults of one rank's host in a real job of Open MPI, each once: the rank, the class and the cause.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/host_faults.sh
. tests/real/host_faults.sh

# A neighbour may be passed over: that is in make bench-host alone.
# shellcheck disable=SC2034 # of the library
host_faults=(quota loader memory garbage loss)
host_test mpi
