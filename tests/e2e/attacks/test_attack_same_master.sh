#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Another user starts ranks with the address, port and rank numbers of a running job: they are no
# part of it, and it is judged as ever.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

seen_by_agent() { [ "$(metric neutracer_agent_ranks)" -ge "$1" ]; }

setup_attack
mkdir "$work/other"
install -m 755 build/sim/launch build/sim/train "$work/other/"
cp -r build/sim/lib "$work/other/"
chmod -R a+rX "$work/other"
master=$(free_port)

# A rank that is there first, and is not of the job.
export RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$master
attack_starts comm_leak --rate 30 --communicators 1500
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
wait_until 20 "the rank of another user" seen_by_agent 1 || fail "the rank of another user is not seen"
sleep 3
start_job train "$healthy_ranks" -- --cgroup "$apart/healthy" --port "$master"
if ! wait_until 20 "the ranks to be seen" job_is_seen "$healthy_ranks"; then
  complain "a rank of another user, there first, is in the healthy job: $(api /api/v1/jobs | jq -c '[.items[] | [.id, .size, .live]]')"
  all_held
fi
stop "$attack_pid"

# A whole job beside it.
watch_begin
(
  echo "$BASHPID" >"$apart/attack/cgroup.procs"
  cd "$work/anyone"
  exec setpriv --reuid 65534 --regid 65534 --clear-groups "$work/other/launch" -n "$healthy_ranks" --port "$master" -- \
    "$work/other/train" --seconds 25 --compute-ms 200 >"$work/out/other" 2>&1
) &
other=$!
attackers+=("$other")
other_steps() { [ -e "$work/out/other" ] && grep -q '^step ' "$work/out/other"; }
wait_until 30 "the other job to step" other_steps || fail "the other job does not run: $(cat "$work/out/other")"
for ((i = 0; i < 10; i++)); do
  job_is_seen "$healthy_ranks" || complain "ranks of another user are in the healthy job: $(ranks | jq -c '[.[] | [.rank, .pid]]')"
  [ ${#wrong[@]} -eq 0 ] || break
  sleep 1
done
slow_rank_is_named "beside a job of the same master"
watch_end "the same master"
stop "$other"
healthy_job_is_complete "the same master"
all_held
