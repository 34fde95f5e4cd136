#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that do not synchronise on their own work, as of PyTorch 2.15, whose watchdog polls an event before and
# after each collective. What it is told shows the own work of each GPU (T2), without a library in the process. The
# watchdog here polls more often than PyTorch's: with one query a second, the verdict takes minutes.
set -euo pipefail
job=(--job train --ranks 4 --runs 1)
options=(--check none --watchdog nccl2 --poll-ms 5 --buckets 1 --compute-ms 200 --barrier-every 0)
tests/e2e/runs.sh "${job[@]}" --fault compute --factor 1.3 --before 75 --within 150 -- "${options[@]}"
tests/e2e/runs.sh "${job[@]}" --fault none --seconds 90 -- "${options[@]}"
