#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Three brokers, of which one goes at a time.
set -euo pipefail
. tests/kafka/lib.sh

kafka --version 4.1.1 --nodes 3
try "$bin/three"
exit $status
