#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What it costs to judge what a cluster's agents send. For each size a topic of a fresh Kafka is filled
# (bench/bus/fill.c), read by librdkafka alone (bench/bus/raw.c), and then by the aggregator, from its
# beginning to its end, with decoding, detection, pictures and saving. The ratio is that of the records
# which either reads in a second of CPU.
#
#   bench/bus/bus.sh [--quick] [--job RANKS] [RANKS:SECONDS...]
#
# SECONDS are of data; ranks are in jobs of 8,192 unless --job says otherwise. --quick takes two minutes.
set -euo pipefail

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh
programs=build/release/bin fill=build/bench/bus_fill raw=build/bench/bus_raw
need "$programs/neutracer-aggregator" "$programs/neutracer" "$fill" "$raw" curl

sizes=() job=8192
while [ $# -gt 0 ]; do
  case $1 in
    --quick) sizes=(1000:30 8000:10) ;;
    --job) job=$2 && shift ;;
    *:*) sizes+=("$1") ;;
    *) fail "unknown option '$1'" ;;
  esac
  shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=(1000:120 10000:30 100000:15)

work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
mkdir "$work/log"
pid=''
finish() {
  local status=$?
  set +e
  stop "$pid"
  tests/kafka/kafka.sh down
  rm -rf "$kafka_dir"
  (exit "$status")
  cleanup
}
trap finish EXIT

tick=$(getconf CLK_TCK)
cpu_seconds() { awk -v tick="$tick" '{ print ($14 + $15) / tick }' "/proc/$1/stat"; }
peak_kb() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }
log_bytes() { # log_bytes TOPIC: what the broker has stored
  cat "$NT_KAFKA/1/logs/$1"-*/*.log | wc -c
}
metrics() { curl -sf --max-time 10 "http://127.0.0.1:$port/metrics" >"$work/metrics"; }
metric() { # metric NAME: the sum over its labels
  awk -v name="neutracer_aggregator_$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { printf "%.0f", sum }' "$work/metrics"
}

# The aggregator has taken all windows; who has ended says why.
has_taken() {
  kill -0 "$pid" 2>/dev/null || fail "the aggregator has ended"
  metrics && [ "$(metric windows_total)" -ge "$1" ]
}

aggregate() { # aggregate WINDOWS: "CPU seconds, wall seconds, peak KB" in $work/aggregate
  local begin
  port=$(free_port)
  rm -f "$work"/store.db*
  "$programs/neutracer-aggregator" --bus "kafka://$NT_TEST_KAFKA" --listen "127.0.0.1:$port" --metrics-open \
    --token-file "$work/token" --store "$work/store.db" --rewind 1d >"$work/log/aggregator.log" 2>&1 &
  pid=$!
  wait_until 60 "the first window" has_taken 1 || fail "the aggregator reads nothing"
  begin=$(now_ms)
  wait_until 600 "the last window" has_taken "$1" || fail "the aggregator does not come to the end"
  echo "$(cpu_seconds "$pid") $(awk -v ms=$(($(now_ms) - begin)) 'BEGIN { print ms / 1000 }') $(peak_kb "$pid")" >"$work/aggregate"
  # What was not judged, or not read as it was sent, would make it look fast.
  [ "$(metric windows_total)" -eq "$1" ] || fail "$(metric windows_total) windows instead of $1"
  for name in windows_unused_total duplicates_total gaps_total records_refused_total over_limit_total; do
    [ "$(metric "$name")" -eq 0 ] || fail "$name is $(metric "$name")"
  done
  echo "# $(metric frames_total) frames, $(metric incident_changes_total) changes of incidents"
  stop "$pid"
  pid=''
}

: >"$work/table"
for size in "${sizes[@]}"; do
  ranks=${size%:*} seconds=${size#*:}
  kafka --nodes 1
  "$programs/neutracer" topics create --bus "kafka://$NT_TEST_KAFKA" >"$work/log/topics.log" 2>&1 || fail "the topics are not made"
  begin=$(now_ms)
  read -r windows bytes span nodes jobs < <("$fill" "kafka://$NT_TEST_KAFKA" "$ranks" "$seconds" "$job" 2>"$work/log/fill.log") ||
    fail "the topic is not filled"
  echo "# $ranks ranks, $nodes nodes, $jobs jobs, $span s of data, $((bytes / windows)) bytes a window, filled in $((($(now_ms) - begin) / 1000)) s"
  read -r records _ raw_cpu raw_wall < <("$raw" "$NT_TEST_KAFKA" neutracer.window.v1) || fail "the topic cannot be read"
  [ "$records" -eq "$windows" ] || fail "$records records of $windows"
  stored=$(($(log_bytes neutracer.window.v1) + $(log_bytes neutracer.node.v1)))
  aggregate "$windows"
  echo "$ranks $jobs $span $windows $stored $raw_cpu $raw_wall $(cat "$work/aggregate")" >>"$work/table"
done

awk '
function judge(is_met) { return is_met ? "met" : "missed" }
BEGIN {
  format = "%7s %5s %6s %9s %13s %9s %10s %6s %7s %11s %7s %8s\n"
  printf format, "ranks", "jobs", "data", "windows", "bytes a rank", "CPU a", "decoded", "ratio", "growth", "ranks that", "memory", "memory"
  printf format, "", "", "s", "", "and second", "raw one", "and judged", "", "", "a core does", "MB", "KB a rank"
}
{
  raw = $6 / $4 * 1e6
  own = $8 / $4 * 1e6
  if (NR == 1) first = own
  bytes = $5 / $1 / $3
  a_core = $1 * $3 / $8
  printf format, $1, $2, sprintf("%.0f", $3), $4, sprintf("%.0f", bytes), sprintf("%.2f us", raw), sprintf("%.2f us", own),
    sprintf("%.2f", raw / own), sprintf("%.2f", own / first), sprintf("%.0f", a_core), sprintf("%.0f", $10 / 1024),
    sprintf("%.1f", $10 / $1)
}
END {
  printf "bytes a rank and second: %.0f; aim: at most 400, %s\n", bytes, judge(bytes <= 400)
  printf "records in a second of CPU beside librdkafka alone: %.2f; aim: at least 0.5, %s\n", raw / own, judge(raw / own >= 0.5)
  printf "100,000 ranks take %.1f cores and %.1f GB at what the last size takes a rank\n", 100000 / a_core, $10 / $1 * 100000 / 1024 / 1024
}' "$work/table"
