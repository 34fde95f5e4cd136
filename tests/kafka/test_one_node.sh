#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One broker of either line of releases: the contract of the bus, and what goes beyond it.
set -euo pipefail
. tests/kafka/lib.sh

kafka --version 3.9.1
try "$bin/contract"
try "$bin/bus"
kafka --version 4.1.1
try "$bin/contract"
try "$bin/bus"
exit $status
