#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The tracepoints of the system on a stock kernel. They are passed all the time: patched while another
# virtual CPU of its own thread runs into them, the guest dies or stands still. One thread emulates all.
set -euo pipefail

export VM_ACCEL=tcg,thread=single
exec tests/vm/programs.sh test_host_events test_host_work test_host_handlers test_sockets
