#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs jobs with a fault on a random rank, one job per run. Prints the verdict and its delay for
# each run; the exit status is 0 only if all verdicts were right.
#
#   tests/e2e/runs.sh --job mpi|train --fault compute|loader|none [--runs N] [--ranks N]
#                     [--seconds S] [--within S] [--json FILE] [--factor F] [--before S] [--gpu]
#                     [--nccl VERSION] [--nvml] [-- JOB OPTION...]
#
# The fault comes --before seconds after the ranks are seen, plus up to four (6). --gpu: the stand-in CUPTI
# reports the GPUs of the ranks. --nccl: the stand-in NCCL of that version loads our profiler plugin. --nvml:
# the stand-in NVML states what the GPUs do, and that a slow one is hot; no verdict is right, too.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/e2e/gpu_activity.sh
. tests/e2e/gpu_activity.sh

job=train fault=compute runs=2 ranks=8 seconds=60 within=40 json='' factor='' pause_before=6 measures_gpus='' nvml=() options=()
while [ $# -gt 0 ]; do
  case $1 in
    --job) job=$2 ;;
    --fault) fault=$2 ;;
    --runs) runs=$2 ;;
    --ranks) ranks=$2 ;;
    --seconds) seconds=$2 ;;
    --within) within=$2 ;;
    --json) json=$2 ;;
    --factor) factor=$2 ;;
    --before) pause_before=$2 ;;
    --gpu)
      measures_gpus=1
      export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so LD_LIBRARY_PATH=$PWD/build/sim/lib
      shift
      continue
      ;;
    --nccl)
      measures_gpus=1
      export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_VERSION=$2
      ;;
    --nvml)
      measures_gpus=1
      nvml=(--nvml)
      shift
      continue
      ;;
    --)
      shift
      options=("$@")
      break
      ;;
    *) fail "unknown option '$1'" ;;
  esac
  shift 2
done

class=compute
[ "$fault" != loader ] || class=host

setup
if [ -n "${nvml[*]}" ]; then
  use_nvml
  nvml+=("$library")
  for ((i = 0; i < ranks; i++)); do printf '%d most-clock 1980\n%d gpm 1\n' "$i" "$i"; done >"$SIM_NVML"
fi
start_aggregator --resolve-after 10s
stay_apart
start_agent here "${nvml[@]}"

# Runs start and end without an open incident.
nothing_open() { [ "$(accusations)" = '[]' ]; }
somebody_is_accused() { [ "$(accusations)" != '[]' ]; }

healthy_run() {
  local end=$((SECONDS + seconds))
  while [ $SECONDS -lt $end ]; do
    no_incident
    job_runs || fail "the job ended"
    sleep 1
  done
  end_job || fail "the job failed"
  # The end of the job must not cause one either.
  end=$((SECONDS + 8))
  while [ $SECONDS -lt $end ]; do
    no_incident
    sleep 1
  done
}

faulty_run() {
  local number=$1 rank factor=$factor line before took verdict
  rank=$(draw "$ranks")
  [ -n "$factor" ] || factor=$(awk -v n="$(draw 1001)" 'BEGIN { printf "%.2f", 1.3 + 1.7 * n / 1000 }')
  line="compute $rank $factor"
  [ "$fault" = compute ] || line="loader $rank $(awk -v n="$(draw 51)" 'BEGIN { print 30 + n }')"
  # The fault starts at a random point of a window.
  sleep "$((pause_before + SRANDOM % 4)).$((SRANDOM % 10))"
  nothing_open || fail "run $number: an incident before the fault: $(incidents)"
  before=$(now_ms)
  fault "$line"
  [ -z "${nvml[*]}" ] || echo "$(card_of "$rank") $factor" >"$work/hot"
  wait_until "$within" "a verdict on '$line'" somebody_is_accused || {
    [ -n "${nvml[*]}" ] || fail "run $number: no verdict on '$line'"
    echo "run $number: $job, $line: no verdict within $within s"
    [ -z "$json" ] || printf '{"job": "%s", "fault": "%s", "rank": %d}\n' "$job" "$line" "$rank" >>"$json"
    end_job || fail "the job failed"
    return
  }
  took=$(($(now_ms) - before))
  verdict=$(accusations)
  # Later evidence may change the class, but not the culprit.
  [ "$(jq -c 'map([.class, (.culprits | map([.kind, .rank]))])' <<<"$verdict")" = "[[\"$class\",[[\"rank\",$rank]]]]" ] ||
    fail "run $number: '$line' gave $verdict"
  [ -z "${nvml[*]}" ] || jq -e '.[0].cause == "gpu temperature"' <<<"$verdict" >/dev/null ||
    fail "run $number: '$line' has no cause: $verdict"
  fault
  : >"$work/hot"
  wait_until 90 "the incident to resolve" nothing_open || fail "run $number: '$line' is not resolved: $(incidents)"
  echo "run $number: $job, $line: named after $took ms as rank $rank, $class"
  [ -z "$json" ] || printf '{"job": "%s", "fault": "%s", "rank": %d, "seconds": %d.%03d}\n' "$job" "$line" \
    "$rank" $((took / 1000)) $((took % 1000)) >>"$json"
  end_job || fail "the job failed"
}

# In a subshell, so that further runs follow a failed one.
one_run() {
  trap 'kill_job TERM' EXIT
  start_job "$job" "$ranks" "${options[@]}"
  wait_until 60 "the ranks to be seen" job_is_seen "$ranks" || fail "run $1: the ranks are not seen: $(api /api/v1/jobs)"
  : >"$work/hot"
  if [ -n "${nvml[*]}" ]; then
    # shellcheck disable=SC2046 # a card and a factor, or nothing
    while job_runs; do
      drive $(cat "$work/hot") || :
      sleep 1
    done &
  fi
  if [ "$fault" = none ]; then
    healthy_run
    echo "run $1: $job, healthy for $seconds s: silent ($(incidents | jq length) notes that all were slower)"
    [ -z "$json" ] || printf '{"job": "%s", "fault": "none"}\n' "$job" >>"$json"
  else
    faulty_run "$1"
  fi
}

wrong=0
for ((i = 1; i <= runs; i++)); do
  # An agent measures GPUs without a pause for minutes in all: each run has its own.
  if [ -n "$measures_gpus" ] && [ "$i" -gt 1 ]; then
    stop_agent here
    start_agent here "${nvml[@]}"
  fi
  (one_run "$i") || wrong=$((wrong + 1))
done
[ "$wrong" -eq 0 ] || fail "$wrong of $runs runs were wrong"
