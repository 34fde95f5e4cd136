#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The same on the line of releases before, which many clusters have.
set -euo pipefail
. tests/kafka/lib.sh

kafka --version 3.9.1
try "$bin/contract"
try "$bin/contract_seek"
try "$bin/bus"
try "$bin/members"
exit $status
