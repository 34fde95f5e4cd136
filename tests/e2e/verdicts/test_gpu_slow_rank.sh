#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that never wait for their GPU, of which one is 10 % slower: the calls alone cannot tell which. CUPTI can.
# The fault comes when the GPUs are measured for a few seconds of every thirty.
exec tests/e2e/runs.sh --gpu --job train --fault compute --factor 1.1 --before 100 --within 40 --runs 1 -- --check none
