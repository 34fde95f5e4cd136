# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# For the tests of attacks: an agent, an aggregator and a healthy job, something that attacks from
# a cgroup and a user of its own, and what must hold meanwhile. What fails is gathered, so that one
# run says all of it.
#
#   NT_ATTACK_AGE   seconds that the agent's metrics may be old (10)
#   NT_ATTACK_MB    what the agent and its children may have used at most, together (60)
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

attack=build/attack
healthy_ranks=4
attackers=() watcher='' wrong=()

# setup_attack [AGENT OPTION...]: the programs, copied to where any user may execute them.
# shellcheck disable=SC2120 # options may be none
setup_attack() {
  setup
  # With the status that it ends with: cleanup() gives it back.
  # shellcheck disable=SC2154 # the trap assigns it
  trap 'outcome=$?; set +e; end_attacks; (exit "$outcome"); cleanup' EXIT
  need "$attack/spin" "$attack/fuse_stall" python3
  chmod 755 "$work"
  mkdir -m 755 "$work/attack"
  cp -r "$attack"/[a-z]* "$work/attack/"
  chmod -R a+rX "$work/attack"
  mkdir -m 1777 "$work/anyone"
  start_aggregator --resolve-after 10s
  stay_apart
  mkdir "$apart/healthy" "$apart/attack"
  cgroups=("$apart/healthy" "$apart/attack" "${cgroups[@]}")
  start_agent here "$@"
}

stop_attacks() {
  local pid
  for pid in "${attackers[@]}"; do stop "$pid"; done
  attackers=()
}

# The attackers first: an agent that waits for one of them cannot be ended before.
end_attacks() {
  [ -z "$watcher" ] || stop "$watcher"
  watcher=
  stop_attacks
}

# shellcheck disable=SC2120 # options may be none
healthy_job() { # healthy_job [OPTION...]: of the job
  start_job train "$healthy_ranks" "$@" -- --cgroup "$apart/healthy"
  seen "$healthy_ranks"
}

# start_fast_job RANKS [OPTION...]: 17 probed calls of Open MPI in steps of half a millisecond.
start_fast_job() {
  local ranks=$1
  shift
  job_log=$work/log/fast-$(find "$work/log" -name 'fast-*' | wc -l).log
  : >"$job_log"
  env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to none --quiet \
    -np "$ranks" "$work/attack/mpi_fast" --faults "$work/fast-faults" "$@" >"$job_log" 2>&1 &
  job_pid=$!
}

fast_fault() { # fast_fault LINE...: of that job alone
  printf '%s\n' "$@" >"$work/.fast-faults"
  mv "$work/.fast-faults" "$work/fast-faults"
}

watch_begin() { # for the healthy job
  tests/attack/watch.py "${agent_pid[here]}" "$work/agent-here.prom" "http://127.0.0.1:$port" "$work/token" \
    "$job_id" "$healthy_ranks" >"$work/out/watch" &
  watcher=$!
}

# attack_starts PROGRAM [OPTION...]: in the background; sets attack_pid, and attack_log.
attack_starts() {
  local program=$1
  shift
  attack_log=$work/out/$program-$SRANDOM
  : >"$attack_log"
  (echo "$BASHPID" >"$apart/attack/cgroup.procs" && exec "$work/attack/$program" "$@" >"$attack_log" 2>&1) &
  attack_pid=$!
  attackers+=("$attack_pid")
}

attack_said() { grep -q "^$1" "$attack_log"; }

# attack_ends: the one that was started last, with success.
attack_ends() {
  local status=0
  wait "$attack_pid" || status=$?
  [ "$status" -eq 0 ] || fail "an attacker ended with status $status: $(tail -n 3 "$attack_log")"
}

# attack_runs PROGRAM [OPTION...]: to its end, which must come.
attack_runs() {
  attack_starts "$@"
  attack_ends
}

complain() { # said again at the end
  wrong+=("${1:0:1500}")
  echo "WRONG: $1" >&2
}

# Of all rows of a metric: name it whole.
metric() { awk -v name="$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { printf "%.0f\n", sum }' "$work/agent-here.prom"; }

hold() { # hold NAME JQ_FILTER WHAT: the filter is true of what was seen
  [ "$(jq "$2" "$work/out/watch")" = true ] || complain "$1: $3: $(cat "$work/out/watch")"
}

# watch_end NAME: what must have held since watch_begin.
watch_end() {
  stop "$watcher"
  watcher=
  [ -s "$work/out/watch" ] || fail "$1: the watcher said nothing"
  hold "$1" '.agent == "running"' "the agent is not running"
  hold "$1" ".age < ${NT_ATTACK_AGE:-10}" "its metrics became stale"
  hold "$1" ".peak_kb > 0 and .peak_kb < ${NT_ATTACK_MB:-60} * 1024" "it used too much memory"
  hold "$1" '.state == [] and .ranks == []' "the healthy job or a rank of it was not running"
  hold "$1" ".live == $healthy_ranks" "ranks of the healthy job were not seen"
  hold "$1" '.complete == 1' "windows of the healthy job were incomplete"
  hold "$1" '.windows > 0' "no window of the healthy job was judged"
  hold "$1" '.silent < 10' "the aggregator did not answer"
  echo "$1: $(jq -r '"metrics \(.age | floor) s old at most, agent \(.peak_kb / 1024 | floor) MB, \(.windows) windows"' "$work/out/watch")"
}

# The slow rank of the healthy job is named, and nobody else.
slow_rank_is_named() { # slow_rank_is_named NAME
  local rank found
  rank=$(draw "$healthy_ranks")
  fault "compute $rank 1.8"
  if wait_until 60 "a verdict on rank $rank" has_incident '.state == "firing" and .severity != "info"'; then
    found=$(open_incidents | jq -c '[.[] | select(.severity != "info") | .culprits[].rank] | unique')
    [ "$found" = "[$rank]" ] || complain "$1: rank $rank was slow, $found was accused"
  else
    complain "$1: the slow rank $rank of the healthy job was not named"
  fi
  fault
}

ranks_have_ended() {
  api "/api/v1/jobs/$job_id/ranks?limit=1000" >"$work/ranks.json" &&
    [ "$(jq '[.items[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks.json")" -eq "$healthy_ranks" ]
}

# Every call and byte of the healthy job was seen, exactly.
healthy_job_is_complete() { # healthy_job_is_complete NAME
  local found parent=$job_pid
  end_job || fail "$1: the healthy job failed"
  if ! wait_until 20 "the ranks to end" ranks_have_ended; then
    complain "$1: the end of the healthy job was not seen"
  elif ! found=$(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$parent"); then
    complain "$1: calls of the healthy job were lost:"$'\n'"$found"
  else
    echo "$1: $found"
  fi
}

# all_held: the last line of a test.
all_held() {
  [ ${#wrong[@]} -eq 0 ] || fail "$(printf '%s\n' "${#wrong[@]} did not hold:" "${wrong[@]}")"
}
