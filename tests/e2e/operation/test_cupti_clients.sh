#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job with libneutracer-cupti.so: without an agent CUPTI is not even loaded, and an agent that ends in any way
# leaves nothing behind. Another client of CUPTI is not disturbed, whether it came before or in mid-measurement.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
stay_apart # other jobs would be measured too
plugin=$PWD/build/plugin/libneutracer-cupti.so
profiler=$PWD/$sim/lib/libsim-profiler.so
for file in "$plugin" "$profiler" "$sim/lib/libcupti.so.12"; do
  [ -e "$file" ] || fail "there is no '$file' (make sim plugin)"
done
cp "$plugin" "$work/" # a build meanwhile would replace it
plugin=$work/${plugin##*/}
export LD_LIBRARY_PATH=$PWD/$sim/lib SIM_PROFILER_DIR=$work/profiler
metrics=$work/agent-here.prom
ranks=4

pids() { ranks_of "$job_pid"; }

metric() { awk -v name="neutracer_agent_$1" '$1 == name { print $2 }' "$metrics" 2>/dev/null || :; }
above() { [ "$(metric "$1")" -gt "$2" ] 2>/dev/null; } # above METRIC LEAST

maps() { # maps FILE: how many ranks have mapped it
  local pid count=0
  for pid in $(pids); do
    ! grep -q "/$1" "/proc/$pid/maps" || count=$((count + 1))
  done
  echo "$count"
}

state() { # shellcheck disable=SC2046 # several processes
  tests/e2e/plugin_state.py "$plugin" $(pids)
}
semaphores() { state | awk '{ print $2 }' | sort -u | xargs; }
numbers() { state | awk '{ print $3 }' | xargs; }
all_record() { [ "$(state | awk '$3 > 100' | wc -l)" -eq "$ranks" ]; }
are_traced() { [ "$(semaphores)" = 1 ]; }
are_not_traced() { [ "$(semaphores)" = 0 ]; }

steps() { tail -n 1 "$job_log" | sed -n 's/^step \([0-9]*\),.*/\1/p'; }

# job_goes_on WHAT
job_goes_on() {
  local before
  before=$(steps)
  sleep 2
  job_runs || fail "the job ended $1"
  [ "$(steps)" -gt "$before" ] || fail "the job stands still $1"
}

# No record is made any more, once what was enqueued before has ended.
nothing_is_recorded() {
  local before
  before=$(numbers)
  sleep 1
  [ "$(numbers)" = "$before" ]
}

# ---- without another client ----

export CUDA_INJECTION64_PATH=$plugin
start_job train "$ranks" --check none
job_goes_on "with the library"
[ "$(maps libneutracer-cupti.so)" = "$ranks" ] || fail "the library is in $(maps libneutracer-cupti.so) of $ranks ranks"
[ "$(maps libcupti.so)" = 0 ] || fail "CUPTI is loaded though nobody asks"
are_not_traced || fail "without an agent, tracers are attached: $(semaphores)"
echo "without an agent, CUPTI is not loaded"

for signal in TERM KILL; do
  start_agent here
  wait_until 40 "records of each rank" all_record || fail "no records come of some ranks: $(numbers)"
  wait_until 40 "records" above gpu_records_total 1000 || fail "no records come: $(metric gpu_records_total)"
  are_traced || fail "with an agent, the semaphores are $(semaphores)"
  [ "$(maps libcupti.so)" = "$ranks" ] || fail "CUPTI is in $(maps libcupti.so) of $ranks ranks"
  for loss in lost malformed; do
    [ "$(metric "gpu_records_${loss}_total")" = 0 ] || fail "$(metric "gpu_records_${loss}_total") records are $loss"
  done
  # Calls may have begun before the measurement.
  [ "$(metric gpu_records_unmatched_total)" -le $(($(metric gpu_records_total) / 50)) ] || fail "$(metric gpu_records_unmatched_total) kernels have no call"
  records=$(metric gpu_records_total)
  wait_until 20 "more records" above gpu_records_total "$records" || fail "no more records come"
  stop_agent here $signal
  wait_until 10 "the semaphores" are_not_traced || fail "after SIG$signal the semaphores are $(semaphores)"
  wait_until 10 "the end of the records" nothing_is_recorded || fail "after SIG$signal records are still made"
  job_goes_on "after the agent's SIG$signal"
  echo "SIG$signal of the agent ends the measurement, not the job"
done
end_job || fail "the job failed"

# ---- with another client ----

# Sum of the ranks: kernels, calls that enqueued them, and failures.
counts() { cat "$SIM_PROFILER_DIR"/[0-9]* 2>/dev/null | awk '{ k += $1; l += $2; f += $3 } END { print k + 0, l + 0, f + 0 }'; }
has_counts() { # has_counts KERNELS: of each rank
  [ "$(cat "$SIM_PROFILER_DIR"/[0-9]* 2>/dev/null | awk -v least="$1" '$1 >= least' | wc -l)" -eq "$ranks" ]
}

# client_is_well WHAT: it goes on getting all kernels, and lost none. Some are under way.
client_is_well() {
  local before kernels launches failures
  read -r before _ _ < <(counts)
  sleep 2
  read -r kernels launches failures < <(counts)
  [ "$failures" -eq 0 ] || fail "$1: $failures failures or losses of the other client"
  [ "$kernels" -gt $((before + 100)) ] || fail "$1: from $before to $kernels kernels in 2 s"
  launches=$((launches - kernels))
  [ "${launches#-}" -le $((ranks * 200)) ] ||
    fail "$1: $launches more calls than kernels, of $kernels"
  job_runs || fail "$1: the job ended"
}

warnings() { grep -c 'another profiler uses CUPTI' "$work/log/agent-here.log" || :; }
all_warned() { [ "$(warnings)" -ge "$ranks" ]; }

# one_warning_each WHAT
one_warning_each() {
  local named
  wait_until 40 "a line of each rank" all_warned || fail "$1: $(warnings) of $ranks ranks are named"
  sleep 3
  named=$(grep -o 'process [0-9]*: another profiler' "$work/log/agent-here.log" | sort | uniq -c | awk '$1 != 1 || NF != 5')
  [ -z "$named$(warnings | grep -vx "$ranks")" ] || fail "$1: $(warnings) lines of $ranks ranks: $named"
}

fresh_client() {
  rm -rf "$SIM_PROFILER_DIR" "$work/log/agent-here.log"
  mkdir "$SIM_PROFILER_DIR"
}

fresh_client
export CUDA_INJECTION64_PATH=$profiler SIM_PROFILER_NEXT=$plugin
start_job train "$ranks" --check none
wait_until 20 "the other client's kernels" has_counts 100 || fail "the other client gets no kernels: $(counts)"
client_is_well "before the agent"
start_agent here
one_warning_each "a client that came first"
client_is_well "beside the agent"
[ "$(metric gpu_records_total)" -le "$ranks" ] || fail "$(metric gpu_records_total) records beside another client"
stop_agent here
client_is_well "after the agent"
end_job || fail "the job failed beside another client"
echo "a client that came first is left alone"

for signal in TERM KILL; do
  fresh_client
  rm -f "$work/start"
  export SIM_PROFILER_START=$work/start
  start_job train "$ranks" --check none
  start_agent here
  wait_until 40 "records of each rank" all_record || fail "no records come of some ranks: $(numbers)"
  touch "$work/start"
  wait_until 20 "the other client's kernels" has_counts 1 || fail "the other client gets no kernels: $(counts)"
  stop_agent here $signal
  wait_until 10 "the semaphores" are_not_traced || fail "after SIG$signal the semaphores are $(semaphores)"
  sleep 2
  client_is_well "a client that came in mid-measurement, after SIG$signal"
  start_agent here
  one_warning_each "a client that came in mid-measurement"
  client_is_well "beside the second agent"
  stop_agent here
  client_is_well "after the second agent"
  end_job || fail "the job failed beside a client that came in mid-measurement"
  echo "a client that comes in mid-measurement keeps what it enabled (SIG$signal)"
done
