#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One user fills what is counted: 1,100 idle processes that map a probed library, communicators that
# are never destroyed, ranks. A job that starts later is seen as ever.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

communicators=${NT_ATTACK_COMMUNICATORS:-20000}

setup_attack
healthy_job
watch_begin
for by in nccl mpi; do
  attack_starts comm_leak --by "$by" --communicators "$communicators"
  wait_until 300 "the communicators" attack_said communicators || fail "no communicators: $(cat "$attack_log")"
done
sleep 5
slow_rank_is_named "while communicators leak"
watch_end "communicators that leak"
stop_attacks
healthy_job_is_complete "communicators that leak"
communicators_are_gone() { [ "$(metric neutracer_agent_communicators)" -le 64 ]; }
wait_until 30 "the communicators to be forgotten" communicators_are_gone ||
  complain "$(metric neutracer_agent_communicators) communicators are known after the end of their processes"

# What is kept of a rank is large: whoever has the most of them gives way first.
healthy_job
watch_begin
attack_starts rank_flood --processes 100
wait_until 120 "the ranks to call" attack_said 'ready 100' || fail "no ranks: $(cat "$attack_log")"
memory_is_short() { [ "$(metric 'neutracer_agent_over_cap_total{what="memory"}')" -gt 0 ]; }
wait_until 30 "ranks to be dropped" memory_is_short || complain "1,600 ranks were all kept"
slow_rank_is_named "beside 1,600 ranks"
watch_end "1,600 ranks"
stop_attacks
healthy_job_is_complete "1,600 ranks"

attack_starts idle_maps --processes 1100
wait_until 30 "the idle processes" attack_said 'ready 1100' || fail "no idle processes: $(cat "$attack_log")"
sleep 2
start_job train "$healthy_ranks" -- --cgroup "$apart/healthy"
if wait_until 30 "the ranks to be seen" job_is_seen "$healthy_ranks"; then
  watch_begin
  slow_rank_is_named "beside idle processes"
  watch_end "idle processes"
  healthy_job_is_complete "idle processes"
else
  complain "a job that starts beside 1,100 idle processes is not seen: $(api /api/v1/jobs)"
fi
all_held
