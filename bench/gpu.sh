#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A slow GPU of a job whose hosts never wait for theirs, by the time on the device: N runs with the fault while
# GPUs are measured continuously, N while they are measured for seconds of every thirty, and N healthy runs of
# a minute; with CUPTI, and with NCCL's profiler plugin alone. With NVML alone, N runs in which a GPU is 30 %
# slower and hot, and N healthy ones. Ends with 0 only if every run was right.
#
#   bench/gpu.sh [N [cupti|nccl|nvml]]      (20; 20 take an hour and three quarters with each)
set -euo pipefail
# shellcheck source=bench/verdict_table.sh
. bench/verdict_table.sh

runs=${1:-20} kinds=${2:-cupti nccl nvml} names=()
out=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-bench-XXXXXX")
trap 'rm -rf "$out"' EXIT
wrong=0

series() { # series NAME OPTION...
  local name=$1
  shift
  echo "== $name"
  tests/e2e/runs.sh --job train --within 60 --runs "$runs" --json "$out/$name" "$@" ||
    wrong=$((wrong + 1))
  names+=("$name")
}

for kind in $kinds; do
  case $kind in
    cupti) by=(--gpu) ;;
    nccl) by=(--nccl 2.30) ;;
    nvml)
      series nvml-hot --nvml --fault compute --factor 1.3 --before 60 --within 120 -- --check none --compute-ms 150
      series nvml-healthy --nvml --fault none --seconds 60 -- --check none --compute-ms 150
      continue
      ;;
    *)
      echo "bench/gpu.sh: '$kind' is none of cupti, nccl and nvml" >&2
      exit 2
      ;;
  esac
  series "$kind-new" "${by[@]}" --fault compute --factor 1.1 --before 12 -- --check none
  series "$kind-windows" "${by[@]}" --fault compute --factor 1.1 --before 100 -- --check none
  series "$kind-healthy" "${by[@]}" --fault none --seconds 60 -- --check none
done

verdict_table "$out" "$runs" '' "${names[@]}" && [ "$wrong" -eq 0 ]
