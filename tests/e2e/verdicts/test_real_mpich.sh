#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A stencil code on Debian's MPICH: its steps; a rank that is held, stopped, killed.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/programs.sh
. tests/real/programs.sh

real_test mpich
