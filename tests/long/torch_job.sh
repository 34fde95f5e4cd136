# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# For the scripts beside: tests/e2e/lib.sh, and a job of PyTorch on NCCL over the stand-in libraries.
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

[ "$(uname -m)" = x86_64 ] || skip "torch: the pinned wheels are for x86_64"
/usr/bin/python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  skip "torch: the pinned wheels are for Python 3.11"
setup
ranks=4
torchrun_pid=
limit=150 # seconds that a rank may live
width=$((128 + $(draw 256))) # of the model: at most a megabyte, one bucket
directories=$(tests/long/torch.sh "$sim/lib") || fail "PyTorch cannot be installed"
{ read -r site; read -r dummies; } <<<"$directories"

options=() # of each job
torchrun() { # torchrun OPTION...: options of the script
  job_log=$work/log/job-$(($(find "$work/log" -name 'job-*' | wc -l) + 1)).log
  : >"$job_log" # there before the job's own process opens it
  rm -rf "$control/truth"
  mkdir "$control/truth"
  env PYTHONPATH="$site" PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore OMP_NUM_THREADS=1 \
    LD_LIBRARY_PATH="$PWD/$sim/lib:$dummies" \
    /usr/bin/python3 -m torch.distributed.run --nproc-per-node "$ranks" --master-port "$(free_port)" \
    tests/sim/ddp_nccl.py --faults "$control/faults" --out "$control/truth" --limit "$limit" "${options[@]}" "$@" \
    >"$job_log" 2>&1 &
  job_pid=$!
}

# Starts the programs and the job, and waits until all of it is known and nobody accused.
start_all() {
  start_aggregator --resolve-after 10s
  start_agent here
  torchrun --seconds 3600 --width "$width"
  # shellcheck disable=SC2034 # for the scripts
  torchrun_pid=$job_pid
  wait_until 60 "the job to step" job_steps || fail "the job does not run"
  seen "$ranks"
  quiet 6
}

# For the jobs that start from then on.
with_cupti() {
  # PyTorch names another release of CUPTI, for which there is a dummy.
  export NEUTRACER_CUPTI_LIBRARY=$PWD/build/sim/lib/libcupti.so.12
  export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so
}
with_nccl_plugin() { # with_nccl_plugin RELEASE: of NCCL
  export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_VERSION=$1
}
without_libraries() {
  unset NEUTRACER_CUPTI_LIBRARY CUDA_INJECTION64_PATH NCCL_PROFILER_PLUGIN SIM_NCCL_VERSION NCCL_ALLGATHERV_ENABLE
}

# named_with WHAT SECONDS [KIND...]: a GPU that is 10 % slower, in a job of each kind; both without KIND.
named_with() {
  local what=$1 within=$2 kind kind_options rank
  shift 2
  [ $# -gt 0 ] || set -- ddp fsdp
  for kind; do
    kind_options=()
    # The hosts of FSDP take some 50 ms a step on a machine of two cores: the GPU must take longer.
    [ "$kind" != fsdp ] || kind_options=(--fsdp --compute-ms 200)
    # An agent measures without a pause for five minutes in all (gpu_schedule.h): each job has its own.
    [ -z "${agent_pid[here]:-}" ] || stop_agent here
    start_agent here
    torchrun --seconds 3600 --width "$width" "${kind_options[@]}"
    wait_until 60 "the job to step" job_steps || fail "the job does not run"
    seen "$ranks"
    quiet 12
    rank=$(draw "$ranks")
    fault "compute $rank 1.1"
    expect "$within" "a GPU of PyTorch's job $kind (NCCL ${SIM_NCCL_VERSION:-as it is}) that is 10 % slower, with $what" compute "$rank"
    heal
    quiet 10
    end_job || fail "the job failed"
  done
}
