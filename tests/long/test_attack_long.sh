#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The storms of tests/e2e/attacks at full length: 200 processes coming and going each second for five
# minutes, 100,000 threads with at most 20,000 at once, 163,000 communicators of each kind that are
# never destroyed.
set -euo pipefail

export NT_ATTACK_THREADS=100000 NT_ATTACK_AT_ONCE=20000 NT_ATTACK_CHURN_SECONDS=300 NT_ATTACK_COMMUNICATORS=163000
status=0
tests/e2e/attacks/test_attack_storm.sh || status=$?
tests/e2e/attacks/test_attack_tables.sh || status=$?
exit "$status"
