#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent costs programs that make very many probed calls, in one run:
#
# Loops. A probed function is called at full speed from 1 and from 8 threads, and the agent is started
# and stopped behind it in turn. Printed: the slow-down against the seconds without the agent around it
# (CPU time a call), by second and as a median from the third second on, beside how much the seconds
# without the agent differ among themselves; and how long after the calm begins the probe is back.
#
# Steps of half a millisecond. A job of Open MPI with 17 probed calls a rank and step, with and
# without the agent in turn: the ratio of its step times, by medians of pairs; and how long it takes
# until a slow rank in it is named.
#
#   bench/governor.sh [loops|steps]...     (both)
#
#   FUNCTIONS   of the loops (cudaLaunchKernel ncclAllReduce MPI_Comm_rank)
#   ROUNDS      of a loop (4)        SECONDS_BARE, SECONDS_HOT   of a round without and with the agent (8, 20)
#   SECONDS_CALM   to wait for a probe (40)
#   PAIRS       of the job (5)       SECONDS_JOB   of one run of it (15)
#   RANKS       of the job (2)       WORK_US       own work of a step (400)
#   AGENT       options of the agent
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

read -ra functions <<<"${FUNCTIONS:-cudaLaunchKernel ncclAllReduce MPI_Comm_rank}"
read -ra agent_options <<<"${AGENT:-}"
rounds=${ROUNDS:-4} bare=${SECONDS_BARE:-8} hot=${SECONDS_HOT:-20} calm_seconds=${SECONDS_CALM:-40}
pairs=${PAIRS:-5} seconds=${SECONDS_JOB:-15} job_ranks=${RANKS:-2} work_us=${WORK_US:-400}
missed=0

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

with_agent() { start_agent here --cgroup "$apart" "${agent_options[@]}"; }

# ---- loops ---------------------------------------------------------------------------------------

lines_of() { grep -c '^hot ' "$work/out/spin" || true; }

spun() { [ "$(lines_of)" -ge "$1" ]; }

mark() { echo "$1 $(($(lines_of) + 1))" >>"$work/out/marks"; } # mark bare|change|with: from the next second on

# One loop, before which, and behind which, the agent is started and stopped `rounds` times. A round is compared
# with the seconds without the agent on both sides of it, so that what else the machine does cancels out.
loop() { # loop FUNCTION THREADS
  local function=$1 threads=$2 i spinner
  : >"$work/out/spin"
  : >"$work/out/marks"
  "$work/attack/spin" --threads "$threads" --function "$function" --seconds 36000 --calm 0 >"$work/out/spin" &
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

step_us() { # of one run
  start_fast_job "$job_ranks" --seconds "$seconds" --work-us "$work_us"
  wait "$job_pid" || fail "the job failed: $(tail -n 3 "$job_log")"
  job_pid=
  # The first second is left out: libraries are loaded, probes are made.
  sed -n 's/^step [0-9]*, \([0-9.]*\) ms.*/\1/p' "$job_log" | tail -n +2 | median | awk '{ print $1 * 1000 }'
}

steps() {
  local i begin rank
  : >"$work/without"
  : >"$work/with"
  for ((i = 1; i <= pairs; i++)); do
    step_us >>"$work/without"
    with_agent
    step_us >>"$work/with"
    stop_agent here
    printf '\rpair %d of %d' "$i" "$pairs" >&2
  done
  printf '\r                \r' >&2
  paste "$work/with" "$work/without" | awk '{ print $1 / $2 }' | sort -g | awk -v with="$(median <"$work/with")" \
    -v without="$(median <"$work/without")" '{ v[NR] = $1 } END {
      m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
      printf "job of %d ranks, 17 calls a step: %.0f us a step without the agent, %.0f with\n", '"$job_ranks"', without, with
      printf "  wall ratio: median %.3f, from %.3f to %.3f in %d pairs (aim: under 1.02): %s\n", m, v[1], v[NR], NR,
        (m < 1.02 ? "met" : "missed")
      exit !(m < 1.02) }' || missed=$((missed + 1))

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
