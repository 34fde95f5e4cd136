#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that never wait for their GPU, of which one is 10 % slower, without CUPTI: the profiler plugin of NCCL
# reports how long each rank was in communication, and the rank that was least is named.
exec tests/e2e/runs.sh --nccl 2.30 --job train --fault compute --factor 1.1 --before 20 --within 60 --runs 1 -- --check none
