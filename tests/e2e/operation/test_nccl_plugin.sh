#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job with libnccl-profiler-neutracer.so: without an agent NCCL asks it for nothing but one event of each call,
# an agent that ends in any way leaves nothing behind, and another plugin gets its events all the time. With NCCL
# 2.31 nothing is switched on.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
stay_apart # other jobs would be measured too
plugin=$PWD/build/plugin/libnccl-profiler-neutracer.so
next=$PWD/$sim/lib/libnccl-profiler-sim.so
for file in "$plugin" "$next"; do
  [ -e "$file" ] || fail "there is no '$file' (make sim plugin)"
done
cp "$plugin" "$work/" # a build meanwhile would replace it
plugin=$work/${plugin##*/}
metrics=$work/agent-here.prom
ranks=4
export NCCL_PROFILER_PLUGIN=$plugin

metric() { awk -v name="neutracer_agent_$1" '$1 == name { print $2 }' "$metrics" 2>/dev/null || :; }
above() { [ "$(metric "$1")" -gt "$2" ] 2>/dev/null; } # above METRIC LEAST
is_measured() { [ "$(metric measured_nccl_processes)" = "$ranks" ]; }

state() { # shellcheck disable=SC2046 # several processes
  tests/e2e/plugin_state.py "$plugin" $(ranks_of "$job_pid")
}
semaphores() { state | awk '{ print $2 }' | sort -u | xargs; }
numbers() { state | awk '{ print $3 }' | xargs; }
all_record() { [ "$(state | awk '$3 > 100' | wc -l)" -eq "$ranks" ]; }
are_not_traced() { [ "$(semaphores)" = 0 ]; }
nothing_is_recorded() {
  local before
  before=$(numbers)
  sleep 1
  [ "$(numbers)" = "$before" ]
}

# What the other plugin has counted (tests/sim/profiler/counting_plugin.h): a number by its place.
counted() { od -An -tu8 -j $((8 * $1)) -N 8 "$SIM_PLUGIN_OUT" | tr -d ' '; }
collectives() { counted 5; } # that have begun
errors() { counted 104; }
job_goes_on() { # job_goes_on WHAT
  local before
  before=$(collectives)
  sleep 2
  job_runs || fail "the job ended $1"
  [ "$(collectives)" -gt $((before + 10)) ] || fail "the other plugin gets no events $1: $before, $(collectives)"
  [ "$(errors)" = 0 ] || fail "the other plugin's events are wrong $1: $(tail -c +$((8 * 105 + 1)) "$SIM_PLUGIN_OUT" | head -c 256 | tr -d '\0')"
}

export NEUTRACER_NCCL_NEXT_PLUGIN=$next SIM_PLUGIN_OUT=$work/counts SIM_PLUGIN_MASK=2 SIM_NCCL_VERSION=2.30
start_job train "$ranks" --check none
wait_until 20 "the other plugin" test -s "$SIM_PLUGIN_OUT"
job_goes_on "without an agent"
[ "$(semaphores)" = 0 ] || fail "without an agent, tracers are attached: $(semaphores)"
[ "$(numbers | tr ' ' '\n' | sort -u)" = 0 ] || fail "without an agent, records are made: $(numbers)"
[ "$(counted 10)" = 0 ] || fail "without an agent, kernels are reported: $(counted 10)"
echo "without an agent no kernel is reported, and the other plugin gets its events"

for signal in TERM KILL; do
  start_agent here
  wait_until 60 "records of each rank" all_record || fail "no records come of some ranks: $(numbers)"
  wait_until 40 "records" above gpu_records_total 1000 || fail "no records come: $(metric gpu_records_total)"
  is_measured || fail "$(metric measured_nccl_processes) of $ranks ranks are measured"
  [ "$(metric gpu_records_malformed_total)" = 0 ] || fail "$(metric gpu_records_malformed_total) records are malformed"
  # Threads that preempt each other find the plugin's tables in use: an event that gives up is lost, and counted.
  [ "$(metric gpu_records_lost_total)" -le 10 ] || fail "$(metric gpu_records_lost_total) of a thousand records are lost"
  [ "$(metric gpu_processes_refused_total)" = 0 ] || fail "times of NCCL's kernels are not used"
  job_goes_on "beside the agent"
  stop_agent here $signal
  wait_until 10 "the semaphores" are_not_traced || fail "after SIG$signal the semaphores are $(semaphores)"
  wait_until 10 "the end of the records" nothing_is_recorded || fail "after SIG$signal records are still made"
  job_goes_on "after the agent's SIG$signal"
  echo "SIG$signal of the agent ends the measurement, not the job"
done
end_job || fail "the job failed"
[ "$(counted 3)" = "$(counted 2)" ] || fail "the other plugin had $(counted 2) init() and $(counted 3) finalize()"

# With NCCL 2.31 windows would mix up the times of collectives.
export SIM_NCCL_VERSION=2.31
unset NEUTRACER_NCCL_NEXT_PLUGIN
start_job train "$ranks" --check none
start_agent here
wait_until 40 "the ranks to be attached" is_measured || fail "$(metric measured_nccl_processes) of $ranks ranks are attached"
sleep 3
are_refused() { [ "$(metric gpu_processes_refused_total)" = "$ranks" ]; }
wait_until 20 "the reason" are_refused || fail "it is not reported why nothing is: $(metric gpu_processes_refused_total)"
[ "$(metric gpu_intervals_total)" = 0 ] || fail "with NCCL 2.31 times are reported: $(metric gpu_intervals_total)"
grep -q "only with NEUTRACER_NCCL_KERNELS=always" "$work/log/agent-here.log" || fail "the log does not say why nothing is"
end_job || fail "the job failed"
stop_agent here
echo "with NCCL 2.31 nothing is switched on, and the log says why"

export NEUTRACER_NCCL_KERNELS=always
start_job train "$ranks" --check none
start_agent here
wait_until 60 "records of each rank" all_record || fail "no records come of some ranks: $(numbers)"
[ "$(metric gpu_processes_refused_total)" = 0 ] || fail "times of NCCL's kernels are not used"
end_job || fail "the job failed"
echo "unless the job says so"
