#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent costs programs that make very many probed calls, in one run:
#
# Loops. A probed function is called at full speed from 1 and from 8 threads for a minute, with and
# without the agent in turn, and calmly behind it. Printed: the slow-down by second against no agent
# (CPU time a call), the second from which it stays under 2 %, and how long after the calm begins the
# probe is back.
#
# Steps of half a millisecond. A job of Open MPI with 17 probed calls a rank and step, with and
# without the agent in turn: the ratio of its step times, by medians of pairs; and how long it takes
# until a slow rank in it is named.
#
#   bench/governor.sh [loops|steps]...     (both)
#
#   FUNCTIONS   of the loops (cudaLaunchKernel ncclAllReduce MPI_Comm_rank)
#   SECONDS_HOT, SECONDS_CALM   of a loop (60, 40)
#   PAIRS       of the job (5)       SECONDS_JOB   of one run of it (15)
#   RANKS       of the job (2)       WORK_US       own work of a step (400)
#   AGENT       options of the agent
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

read -ra functions <<<"${FUNCTIONS:-cudaLaunchKernel ncclAllReduce MPI_Comm_rank}"
read -ra agent_options <<<"${AGENT:-}"
hot=${SECONDS_HOT:-60} calm=${SECONDS_CALM:-40}
pairs=${PAIRS:-5} seconds=${SECONDS_JOB:-15} job_ranks=${RANKS:-2} work_us=${WORK_US:-400}
missed=0

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

with_agent() { start_agent here --cgroup "$apart" "${agent_options[@]}"; }

# ---- loops ---------------------------------------------------------------------------------------

spin() { # spin FILE THREADS FUNCTION HOT CALM
  "$work/attack/spin" --threads "$2" --function "$3" --seconds "$4" --calm "$5" >"$1" || fail "the loop failed: $(cat "$1")"
}

# The ns a call of the loop without the agent, before and behind: medians of all seconds.
loop() { # loop FUNCTION THREADS
  local function=$1 threads=$2 bare bare_rate calm_ns
  spin "$work/out/before" "$threads" "$function" $((hot / 2)) 3
  with_agent
  spin "$work/out/with" "$threads" "$function" "$hot" "$calm"
  stop_agent here
  spin "$work/out/behind" "$threads" "$function" $((hot / 2)) 3
  bare=$(cat "$work/out/before" "$work/out/behind" | awk '$1 == "hot" { print $4 }' | median)
  bare_rate=$(cat "$work/out/before" "$work/out/behind" | awk '$1 == "hot" { print $3 }' | median)
  calm_ns=$(cat "$work/out/before" "$work/out/behind" | awk '$1 == "calm" { print $4 }' | median)
  # A call of nothing costs some nanoseconds; more is some other agent or tracer on this machine.
  awk -v ns="$bare" 'BEGIN { exit !(ns < 100) }' ||
    echo "WARNING: '$function' costs $bare ns without our agent: another one probes it, the figures are void" >&2
  awk -v name="$function" -v threads="$threads" -v bare="$bare" -v rate="$bare_rate" -v calm_ns="$calm_ns" '
    $1 == "hot" { n++; slow[n] = 100 * ($4 / bare - 1); wall[n] = 100 * (1 - $3 / rate) }
    $1 == "calm" && !back && $4 > calm_ns + 200 { back = $2 }
    function median_of(from, to,   i, j, k, t) {
      k = 0
      for (i = from; i <= to; i++) t[++k] = slow[i]
      for (i = 1; i <= k; i++)
        for (j = i + 1; j <= k; j++)
          if (t[j] < t[i]) { swap = t[i]; t[i] = t[j]; t[j] = swap }
      return t[int((k + 1) / 2)]
    }
    END {
      printf "%s, %d thread%s: %.0f million calls a second without the agent, %.2f ns a call\n",
        name, threads, (threads > 1 ? "s" : ""), rate / 1e6, bare
      line = "  slow-down in %, by second:"
      for (i = 1; i <= n && i <= 10; i++) line = line sprintf(" %.1f", slow[i])
      print line
      settled = n + 1
      for (i = n; i >= 1 && slow[i] < 2; i--) settled = i
      over = 0
      for (i = 3; i <= n; i++) over += slow[i] >= 2
      printf "  from second 3 on: median %.2f %%, %d of %d seconds at 2 %% or more\n", median_of(3, n), over, n - 2
      if (settled <= n) printf "  stays under 2 %% from second %d on (aim: 3): %s\n", settled, (settled <= 3 ? "met" : "missed")
      else print "  never stays under 2 % (aim: from second 3 on): missed"
      if (back) printf "  probed again in second %d of the calm (aim: 30): %s\n", back, (back <= 30 ? "met" : "missed")
      else printf "  not probed again in the calm (aim: within 30 s): missed\n"
      exit !(settled <= 3 && back && back <= 30)
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
      done
      ;;
    steps) steps ;;
    *) fail "unknown part '$part'" ;;
  esac
done
[ "$missed" -eq 0 ] || echo "$missed aims missed"
