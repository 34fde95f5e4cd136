#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Faults of one rank's host in a real PyTorch job over Gloo, each once: the rank, the class and the cause.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/host_faults.sh
. tests/real/host_faults.sh

# What the test of Open MPI has not, and what differs; make bench-host has all.
# shellcheck disable=SC2034 # of the library
host_faults=(loader memory loss)
host_test gloo
