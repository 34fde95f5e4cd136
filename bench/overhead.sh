#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the agent costs a job of eight ranks, in one run: the cost of a probed call times the calls of
# a step, over the step; beside it the wall ratio of the job with and without the agent, measured in
# pairs; and the agent's own CPU and memory.
#
#   bench/overhead.sh [PAIRS] [SECONDS]     (7 pairs of 2 × 10 s)
#
# GPU=cupti, nccl: the job loads our library of that kind, and the agent measures without a pause, as while it
# suspects something; at other times it does so for a tenth of the time. The ratio includes this.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

pairs=${1:-7} seconds=${2:-10} agent_options=()
case ${GPU:-} in
  '') ;;
  cupti) export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so LD_LIBRARY_PATH=$PWD/build/sim/lib ;;
  nccl) export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_VERSION=2.30 ;;
  *)
    echo "bench/overhead.sh: GPU is '$GPU', expected cupti or nccl" >&2
    exit 2
    ;;
esac
[ -z "${GPU:-}" ] || agent_options=(--gpu-interval 0)
tick=$(getconf CLK_TCK)

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# Milliseconds a step in the last `seconds`: the job prints its count about once a second.
step_ms() {
  local from to
  from=$(tail -n 1 "$job_log" | sed -n 's/^step \([0-9]*\),.*/\1/p')
  sleep "$seconds"
  to=$(tail -n 1 "$job_log" | sed -n 's/^step \([0-9]*\),.*/\1/p')
  sed -n "$((from < to ? 1 : 1)),\$p" "$job_log" | tail -n "$seconds" |
    sed -n 's/^step [0-9]*, \([0-9.]*\) ms.*/\1/p' | median
}
metric() { awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { printf "%.0f", sum }' "$work/agent-here.prom"; }
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

setup
start_aggregator
start_job train 8
sleep 3
: >"$work/with"
: >"$work/without"
for ((i = 1; i <= pairs; i++)); do
  step_ms >>"$work/without"
  start_agent here "${agent_options[@]}"
  seen 8
  pid=${agent_pid[here]}
  # The unshare is replaced by the agent itself: its process is the one that we started.
  cpu=$(cpu_ticks "$pid") events=$(metric neutracer_agent_events_total) begin=$(now_ms)
  step_ms >>"$work/with"
  span=$(($(now_ms) - begin))
  awk -v ticks=$(($(cpu_ticks "$pid") - cpu)) -v hz="$tick" -v ms=$span \
    'BEGIN { print 100 * ticks / hz / ms * 1000 }' >>"$work/cpu"
  awk -v n=$(($(metric neutracer_agent_events_total) - events)) -v ms=$span 'BEGIN { print n * 1000 / ms }' >>"$work/events"
  awk '/^VmHWM/ { print $2 / 1024 }' "/proc/$pid/status" >>"$work/rss"
  ranks_json=$(ranks)
  stop_agent here
  printf '\rpair %d of %d' "$i" "$pairs" >&2
done
printf '\r                \r' >&2

build/bench/probes "$PWD/build/bench/libstub.so" build/bench/empty.bpf.o 5 >"$work/probes" 2>/dev/null
cost() { awk -v name="$1" 'index($0, name) == 1 { sub(name, ""); print $1 }' "$work/probes"; }
launch_ns=$(cost 'launch: ours, counted')
event_ns=$(cost 'blocking: ours, entry and return with an event')
launches=$(jq '[.[] | .launches / ([.steps, 1] | max)] | add / length' <<<"$ranks_json")
step=$(median <"$work/with")
events=$(median <"$work/events")

awk -v launches="$launches" -v launch_ns="$launch_ns" -v events="$events" -v event_ns="$event_ns" -v step="$step" 'BEGIN {
  calls = events * step / 1000 / 8
  cost = launches * launch_ns + calls * event_ns
  printf "job: 8 ranks, step %.1f ms, per rank and step %.0f launches and %.1f reported calls\n", step, launches, calls
  printf "slow-down by calls × cost ÷ step: %.3f %% (%.0f ns a launch, %.0f ns a reported call); aim: under 0.5 %%, %s\n",
    cost / step / 1e4, launch_ns, event_ns, cost / step / 1e4 < 0.5 ? "met" : "missed"
}'
paste "$work/with" "$work/without" | awk '{ print $1 / $2 }' | sort -g | awk '{ v[NR] = $1 } END {
  printf "wall ratio with ÷ without: median %.3f, from %.3f to %.3f in %d pairs\n", v[int((NR + 1) / 2)], v[1], v[NR], NR }'
awk -v cpu="$(median <"$work/cpu")" -v mb="$(sort -g "$work/rss" | tail -n 1)" 'BEGIN {
  printf "agent: %.2f %% of a core, %.1f MB at most; aim: under 2 %% and 40 MB, %s\n", cpu, mb, cpu < 2 && mb < 40 ? "met" : "missed" }'
