#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent costs programs that make very many probed calls, in one run:
#
# Loops. A probed function is called at full speed from 1 and from 8 threads, and the agent is started
# and stopped behind it in turn. Printed: the slow-down against the seconds without the agent around it
# (CPU time a call, divided by that of a function which is not probed and is called in turn), by second
# and as a median from the third second on, beside how much the seconds without the agent differ among
# themselves; and how long after the calm begins the probe is back.
#
# Steps of half a millisecond. A job of Open MPI with 17 probed calls a rank and step, behind which the
# agent is started and stopped in turn: how much longer its steps are, but for those of more than twice
# the median, in which the host gave the processor to others; and how long it takes until a slow rank in
# it is named.
#
#   bench/governor.sh [loops|steps]...     (both)
#
#   FUNCTIONS   of the loops (cudaLaunchKernel ncclAllReduce MPI_Comm_rank)
#   ROUNDS      of a loop (4)        SECONDS_BARE, SECONDS_HOT   of a round without and with the agent (8, 20)
#   SECONDS_CALM   to wait for a probe (40)
#   STEP_ROUNDS of the job (10)
#   RANKS       of the job (2)       WORK_US       own work of a step (400)
#   AGENT       options of the agent
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

read -ra functions <<<"${FUNCTIONS:-cudaLaunchKernel ncclAllReduce MPI_Comm_rank}"
read -ra agent_options <<<"${AGENT:-}"
rounds=${ROUNDS:-4} bare=${SECONDS_BARE:-8} hot=${SECONDS_HOT:-20} calm_seconds=${SECONDS_CALM:-40}
step_rounds=${STEP_ROUNDS:-10} job_ranks=${RANKS:-2} work_us=${WORK_US:-400}
missed=0 lines=

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

with_agent() { start_agent here "${agent_options[@]}"; }

# ---- loops ---------------------------------------------------------------------------------------

lines_of() { grep -cE '^(hot|step) ' "$lines" || true; } # seconds until now

spun() { [ "$(lines_of)" -ge "$1" ]; }

nothing() { # nothing FUNCTION: the one of its library that is not probed
  case $1 in
    cuda*) echo cudaNothing ;;
    nccl*) echo ncclNothing ;;
    *) echo MPI_Nothing ;;
  esac
}

mark() { echo "$1 $(($(lines_of) + 1))" >>"$work/out/marks"; } # mark bare|change|with: from the next second on

# One loop, before which, and behind which, the agent is started and stopped `rounds` times. A round is compared
# with the seconds without the agent on both sides of it, so that what else the machine does cancels out.
loop() { # loop FUNCTION THREADS
  local function=$1 threads=$2 i spinner
  lines=$work/out/spin
  : >"$lines"
  : >"$work/out/marks"
  "$work/attack/spin" --threads "$threads" --function "$function" --beside "$(nothing "$function")" --seconds 36000 --calm 0 >"$work/out/spin" &
  spinner=$!
  for ((i = 1; i <= rounds; i++)); do
    mark bare
    wait_until $((bare * 2 + 20)) "seconds" spun $(($(lines_of) + bare)) || fail "the loop does not run"
    mark change
    with_agent
    mark with
    wait_until $((hot * 2 + 20)) "seconds" spun $(($(lines_of) + hot)) || fail "the loop does not run"
    mark change
    stop_agent here
    printf '\r%s, %d threads: round %d of %d' "$function" "$threads" "$i" "$rounds" >&2
  done
  mark bare
  wait_until $((bare * 2 + 20)) "seconds" spun $(($(lines_of) + bare)) || fail "the loop does not run"
  stop "$spinner"
  printf '\r%60s\r' '' >&2
  python3 bench/governor.py "$work/out/spin" "$work/out/marks" "$function" "$threads" || missed=$((missed + 1))
}

# How long after a hot loop became calm its function is probed again.
calm() { # calm FUNCTION
  with_agent
  "$work/attack/spin" --threads 1 --function "$1" --seconds 15 --calm "$calm_seconds" >"$work/out/with" ||
    fail "the loop failed: $(cat "$work/out/with")"
  stop_agent here
  "$work/attack/spin" --threads 1 --function "$1" --seconds 1 --calm 5 >"$work/out/bare" ||
    fail "the loop failed: $(cat "$work/out/bare")"
  awk -v ns="$(awk '$1 == "calm" { print $4 }' "$work/out/bare" | median)" '
    $1 == "calm" && !back && $4 > ns + 200 { back = $2 }
    END {
      if (back) printf "  probed again in second %d of the calm (aim: 30): %s\n", back, (back <= 30 ? "met" : "missed")
      else print "  not probed again in the calm (aim: within 30 s): missed"
      exit !(back && back <= 30)
    }' "$work/out/with" || missed=$((missed + 1))
}

# ---- steps ---------------------------------------------------------------------------------------

steps() {
  local i begin rank
  start_fast_job "$job_ranks" --seconds 36000 --work-us "$work_us"
  lines=$job_log
  : >"$work/out/marks"
  wait_until 40 "the job to step" spun 3 || fail "the job does not run"
  for ((i = 1; i <= step_rounds; i++)); do
    mark bare
    wait_until $((bare * 2 + 20)) "seconds" spun $(($(lines_of) + bare)) || fail "the job does not run"
    mark change
    with_agent
    mark with
    wait_until $((bare * 2 + 20)) "seconds" spun $(($(lines_of) + bare + 2)) || fail "the job does not run"
    mark change
    stop_agent here
    printf '\rjob of %d ranks: round %d of %d' "$job_ranks" "$i" "$step_rounds" >&2
  done
  mark bare
  wait_until $((bare * 2 + 20)) "seconds" spun $(($(lines_of) + bare)) || fail "the job does not run"
  stop "$job_pid"
  job_pid=
  printf '\r%60s\r' '' >&2
  python3 bench/governor.py "$job_log" "$work/out/marks" || missed=$((missed + 1))

  with_agent
  start_fast_job "$job_ranks" --seconds 600 --work-us "$work_us"
  wait_until 40 "the job to step" job_steps || fail "the job does not run"
  seen "$job_ranks"
  sleep 12
  rank=$(draw "$job_ranks")
  begin=$(now_ms)
  fast_fault "compute $rank 1.8"
  if wait_until 60 "a verdict" has_incident '.state == "firing" and .severity != "info"'; then
    begin=$(($(now_ms) - begin))
    open_incidents | jq -r --arg rank "$rank" --arg ms "$begin" '
      [.[] | select(.severity != "info") | .culprits[].rank] | unique as $named |
      "  rank \($rank) made slow: rank \($named | map(tostring) | join(", ")) named after \($ms) ms (aim: 30 s): " +
      (if ($named | map(tostring)) == [$rank] and ($ms | tonumber) <= 30000 then "met" else "missed" end)' | tee "$work/out/named"
    grep -q ': met$' "$work/out/named" || missed=$((missed + 1))
  else
    echo "  rank $rank made slow: nobody named within 60 s (aim: 30 s): missed"
    missed=$((missed + 1))
  fi
  stop "$job_pid"
  job_pid=
  stop_agent here
}

setup_attack
stop_agent here
what=("$@")
[ $# -gt 0 ] || what=(loops steps)
for part in "${what[@]}"; do
  case $part in
    loops)
      for function in "${functions[@]}"; do
        for threads in 1 8; do loop "$function" "$threads"; done
        calm "$function"
      done
      ;;
    steps) steps ;;
    *) fail "unknown part '$part'" ;;
  esac
done
[ "$missed" -eq 0 ] || echo "$missed aims missed"
