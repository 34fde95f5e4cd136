#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent publishes the health of GPUs with the node's vector, and goes on when the driver hangs or the
# worker that reads it crashes.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
use_nvml
metrics=$work/agent-here.prom

tell() { printf '%s\n' "$@" >"$SIM_NVML"; }

above() { # above METRIC LEAST
  [ "$(awk -v name="$1" '$1 == name { print $2 }' "$metrics" 2>/dev/null || :)" -ge "${2:-1}" ] 2>/dev/null
}

published() { grep -aq "$1" "$work"/spool/neutracer.node.v1/*/*.seg 2>/dev/null; }

tell '0 clock 990' '0 most-clock 1980' '0 reasons 64' '0 temperature 91' '0 thermal 1500000000'
start_agent here --nvml "$library"
wait_until 30 "a reading" above neutracer_agent_gpu_reads_total || fail "the health of GPUs is not read"
wait_until 30 "the node's vector" published gpu_thermal_seconds || fail "the health of GPUs is not published"
published gpu_cards_held_down || fail "what holds the GPU down is not published"

tell '0 temperature 91' 'crash 0 0'
wait_until 30 "the crash" above 'neutracer_agent_gpu_read_failures_total{reason="refused"}' ||
  fail "a worker that crashes is not counted"
tell '0 temperature 91' 'hang 600 0'
wait_until 120 "the hang" above 'neutracer_agent_gpu_read_failures_total{reason="stalled"}' ||
  fail "a worker that hangs is not counted"
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
echo "GPUs' health is published; a driver that hangs and a worker that crashes cost a reading"
