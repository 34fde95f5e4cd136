#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Floods of probed calls: threads that start by the thousand, loops at full speed over the libraries
# that the healthy job uses too, processes that come and go. No call of the healthy job is lost.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

seconds=${NT_ATTACK_SECONDS:-15}

setup_attack
healthy_job
watch_begin
attack_runs thread_storm --threads "${NT_ATTACK_THREADS:-20000}" --at-once "${NT_ATTACK_AT_ONCE:-5000}" --calls 50 --pause-ms 500
sleep 3
watch_end "threads"
healthy_job_is_complete "threads"

healthy_job
watch_begin
attack_runs spin --threads 8 --function ncclAllReduce --seconds "$seconds"
# The same file as the healthy job's: its probes are the healthy job's, too.
attack_runs spin --threads 2 --function ncclGroupStart --with null --libraries "$PWD/build/sim/lib" --user 0 --seconds "$seconds"
attack_starts spin --threads 1 --function cudaLaunchKernel --with null --libraries "$PWD/build/sim/lib" --user 0 --seconds 120
slow_rank_is_named "while others spin"
stop "$attack_pid"
watch_end "calls at full speed"
healthy_job_is_complete "calls at full speed"

healthy_job
watch_begin
attack_runs churn --rate 200 --seconds "${NT_ATTACK_CHURN_SECONDS:-15}"
watch_end "processes that come and go"
# None of them stays known.
processes_are_gone() { [ "$(metric neutracer_agent_processes)" -le $((healthy_ranks + 1)) ]; }
wait_until 30 "the processes to be forgotten" processes_are_gone ||
  complain "of the processes that came and went $(metric neutracer_agent_processes) are still known"
communicators_are_gone() { [ "$(metric neutracer_agent_communicators)" -le 64 ]; }
wait_until 30 "the communicators to be forgotten" communicators_are_gone ||
  complain "of the processes that came and went $(metric neutracer_agent_communicators) communicators are still known"
healthy_job_is_complete "processes that come and go"
all_held
