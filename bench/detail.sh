#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What level 1 costs with the simulated training job: records a second, bytes of each, processor time and
# memory of the agent with and without them, and what was lost.
#
#   bench/detail.sh [RANKS] [SECONDS]     (8 ranks, 30 s)
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
bin=build/release/bin ranks=${1:-8} seconds=${2:-30}

metric() { # metric LEVEL NAME
  awk -v name="$2" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { printf "%.6f", sum }' "$work/agent-level-$1.prom"
}

stored() { # stored LEVEL: bytes in the segments of its topic
  find "$work/spool-$1/neutracer.detail.v1" -name '*.seg' -exec cat {} + 2>/dev/null | wc -c
}

measure() { # measure LEVEL: sets cpu, records, bytes, resident
  local level=$1 begin bytes_before records_before cpu_before
  start_agent "level-$level" --level "$level" --bus "spool:$work/spool-$level"
  sleep 8 # the job's steps are known
  begin=$(now_ms)
  cpu_before=$(metric "$level" neutracer_agent_cpu_seconds_total)
  records_before=$(metric "$level" neutracer_agent_detail_records_total)
  bytes_before=$(stored "$level" || :)
  sleep "$seconds"
  ms=$(($(now_ms) - begin))
  cpu=$(metric "$level" neutracer_agent_cpu_seconds_total)
  records=$(metric "$level" neutracer_agent_detail_records_total)
  bytes=$(($(stored "$level" || :) - bytes_before))
  awk -v level="$level" -v ms="$ms" -v cpu="$cpu" -v before="$cpu_before" -v records="$records" \
    -v records_before="$records_before" -v bytes="$bytes" -v ranks="$ranks" \
    -v lost="$(metric "$level" neutracer_agent_detail_lost_total)" \
    -v resident="$(metric "$level" neutracer_agent_resident_bytes)" 'BEGIN {
      records -= records_before
      printf "level %d: agent %.2f %% of a core, %.1f MB; %.0f records a second (%.0f a rank)", level,
        (cpu - before) * 100000 / ms, resident / 1e6, records * 1000 / ms, records * 1000 / ms / ranks
      if (records)
        printf ", %.1f bytes each, %d calls lost", bytes / records, lost
      printf "\n"
    }'
  stop_agent "level-$level"
}

setup
start_job train "$ranks"
measure 0
measure 1
end_job || fail "the job failed"
