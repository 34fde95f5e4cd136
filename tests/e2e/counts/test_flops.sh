#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What ranks multiply through cuBLAS is in REST: operations a second, their share of the GPU's peak, and how much
# of the kernel launches they are. A graph hides what it launches, so that a job with graphs states no coverage. What was
# captured in the agent's sight counts with each launch of its graph. Where the library of GPU time reports kernels, the share of their time is stated, too.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

gemms=50

# With the model of the GPU from NVML.
setup
use_nvml
name_cards() {
  local card=0 pid
  for pid in $(ranks_of "$job_pid"); do
    printf '%s\n' "$card model NVIDIA_H100_80GB_HBM3" "$card temperature 50" "$card pid $pid"
    card=$((card + 1))
  done >"$SIM_NVML.new"
  mv "$SIM_NVML.new" "$SIM_NVML"
}

# stated FILTER: each of the ranks has such multiplications.
stated() { ranks | jq -e 'length == 4 and all(.[]; .gemms != null and (.gemms | '"$1"'))' >/dev/null; }

# A frame holds whole steps, so what it multiplies in a second and the time of a step give what a step multiplies.
of_a_step='(.gemms.flops_per_second * .step_seconds / ('$gemms' * 2147483648))'

start_aggregator
start_job train 4 --gemms "$gemms"
name_cards
start_agent here --nvml "$library"
seen 4
wait_until 60 "the multiplications" stated '.types == [.types[0]] and .types[0].type == "bf16" and
  .types[0].compute == "32f" and .types[0].peak_flops_per_second == 989400000000000' ||
  fail "no multiplications are stated: $(ranks | jq -c '.[].gemms')"
counted() {
  ranks | jq -e 'all(.[]; '"$of_a_step"' > 0.9 and '"$of_a_step"' < 1.1)' >/dev/null
}
wait_until 30 "the operations of a step" counted ||
  fail "a step multiplies something else: $(ranks | jq -c ".[] | [$of_a_step, .gemms]")"
stated '.mfu > 0 and .mfu < 1 and (.mfu - .flops_per_second / 989.4e12 | fabs) < 0.001 * .mfu' ||
  fail "the share of the peak is wrong: $(ranks | jq -c '.[].gemms')"
# The job launches kernels of its own, too.
stated '.coverage_of == "launches" and .coverage > 0.02 and .coverage < 0.98 and .unread_calls == 0 and
  .gpu_time_share == null and .gpu_time_at == null' ||
  fail "the coverage is wrong: $(ranks | jq -c '.[].gemms')"
table() { "$bin/neutracer" jobs "$job_id" --server "http://127.0.0.1:$port" --token-file "$work/token"; }
table | grep -Eq '[0-9.]+[GT] [0-9]+% [0-9]+%' || fail "the table lacks them: $(table)"
awk '$1 == "neutracer_agent_gemms_total" && $2 > 0 { found = 1 } END { exit !found }' "$work/agent-here.prom" ||
  fail "they are not counted"
ranks | jq -r '.[0].gemms | "\(.flops_per_second) FLOP/s, \(.coverage) of the launches"'
kill_job TERM
stop_agent here
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"

# Without NVML the peak is that of the option, or unknown.
start_job train 4 --gemms "$gemms" --graph
start_agent graphs --nvml none --gpu-peak 500
seen 4
graphs() { stated '.flops_per_second > 0 and .graph_launches > 0 and .coverage == null and .coverage_of == null and
  .types[0].peak_flops_per_second == 500e12'; }
wait_until 60 "the job with graphs" graphs ||
  fail "a job with graphs states what is not known: $(ranks | jq -c '.[].gemms')"
kill_job TERM
stop_agent graphs
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"

# An agent that has seen the capture knows what a launch multiplies: steps multiply as much as before.
start_agent captures --nvml none --gpu-peak 500
start_job train 4 --gemms "$gemms" --gemm-graph 1
seen 4
# Until 100 steps were made.
replays() { ranks | jq -e 'all(.[]; .gemms.graph_launches == 0 and .gemms.coverage == null and .gemms.types[0].type == "bf16" and
  '"$of_a_step"' > 0.9 and '"$of_a_step"' < 1.1)' >/dev/null; }
wait_until 60 "what graphs multiply" replays || fail "graphs multiply something else: $(ranks | jq -c ".[] | [$of_a_step, .gemms]")"
ranks | jq -r '.[0].gemms | "\(.flops_per_second) FLOP/s by launches of a graph"'
kill_job TERM
stop_agent captures
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"

# With the library of GPU time. A multiplication takes 9.37 us of the stand-in GPU, and the step's other kernels 40 ms.
gemms=400 # fewer than are sent in a period, which has three steps
wanted=$(jq -n "$gemms * 9.37e-3 / ($gemms * 9.37e-3 + 40)")
export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so LD_LIBRARY_PATH=$PWD/build/sim/lib
start_job train 4 --gemms "$gemms"
start_agent measured --nvml none
seen 4
measured() { stated '.gpu_time_share != null and .gpu_time_at != null and
  .gpu_time_share > 0.9 * '"$wanted"' and .gpu_time_share < 1.1 * '"$wanted"; }
wait_until 60 "the share of GPU time" measured ||
  fail "the share of GPU time is not $wanted: $(ranks | jq -c '.[].gemms')"
ranks | jq -r '.[].gemms | "\(.gpu_time_share) of the GPU time, \(.coverage) of the launches"'
shows_share() { table | grep -Eq '[0-9.]+[GT] - [0-9]+%GPU'; }
wait_until 30 "the share of GPU time in the table" shows_share || fail "the table lacks the share of GPU time: $(table)"
kill_job TERM
stop_agent measured
[ "$ended" -eq 0 ] || fail "the agent ends with status $ended"
