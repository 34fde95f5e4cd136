#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One broker of the newest line of releases: the contract of the bus, and what goes beyond it.
set -euo pipefail
. tests/kafka/lib.sh

kafka --version 4.1.1
try "$bin/contract"
try "$bin/contract_seek"
try "$bin/bus"
try "$bin/members"
exit $status
