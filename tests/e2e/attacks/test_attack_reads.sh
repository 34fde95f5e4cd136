#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A process whose calls make the agent read its memory, thousands of times a second: that has an
# allowance, and what else the agent does goes on.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

setup_attack
healthy_job
watch_begin
attack_starts init_all
wait_until 30 "the calls" attack_said ready || fail "no calls: $(cat "$attack_log")"
sleep 10
slow_rank_is_named "beside a process that is read all the time"
watch_end "a process that is read all the time"
refused=$(metric 'neutracer_agent_reads_refused_total{what="allowance"}')
[ "$refused" -gt 0 ] || complain "no read was refused"
echo "reads refused: $refused, lost events: $(metric neutracer_agent_events_dropped_total)"
stop_attacks
healthy_job_is_complete "a process that is read all the time"
all_held
