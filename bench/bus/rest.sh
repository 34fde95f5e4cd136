#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Latency of REST beside ingest: the windows of RANKS live ranks come by a spool, as fast as their agents
# send them, while a client makes RATE requests a second, in the proportions of open pages and dashboards.
# Beside it a libmicrohttpd that does nothing else is measured, under the same ingest and in turn: with a small reply,
# and with as many bytes as the aggregator sends.
#
#   bench/bus/rest.sh [RANKS [RATE [SECONDS [ROUNDS]]]]      (10000 1000 30 2)
#
# Ends with 0 only if p99 is under 20 ms, nothing failed, and the aggregator has judged what was sent.
set -euo pipefail

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
ranks=${1:-10000} rate=${2:-1000} length=${3:-30} rounds=${4:-2}
aim_ms=20 warm=20
fill=build/bench/bus_fill load=build/bench/rest_load
need "$bin/neutracer-aggregator" "$fill" "$load" curl jq

work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
mkdir "$work/log"
fill_pid='' bare_pid=''
finish() {
  local status=$?
  set +e
  stop "$fill_pid"
  stop "$bare_pid"
  (exit "$status")
  cleanup
}
trap finish EXIT

get() { curl -sf --max-time 10 -H "Authorization: Bearer $token" "http://127.0.0.1:$port$1"; }
metric() { get /metrics | awk -v name="neutracer_aggregator_$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { printf "%.0f", sum }'; }
cpu_ms() { awk -v tick="$(getconf CLK_TCK)" '{ printf "%.0f", ($14 + $15) * 1000 / tick }' "/proc/$1/stat"; }
has_ranks() { [ "$(get /api/v1/jobs | jq '[.items[].live] | add')" = "$ranks" ]; }

# A rank is slow from the middle of the data on, so that the later rounds have an incident.
total=$((2 * warm + rounds * (3 * length + 5)))
"$fill" "spool:$work/spool" "$ranks" "$total" 8192 live >"$work/fill" 2>"$work/log/fill.log" &
fill_pid=$!
wait_until 10 "the spool" test -d "$work/spool/neutracer.window.v1" || fail "nothing is sent"
port=$(free_port)
"$bin/neutracer-aggregator" --bus "spool:$work/spool" --listen "127.0.0.1:$port" --token-file "$work/token" \
  --store "$work/store.db" >"$work/log/aggregator.log" 2>&1 &
agg_pid=$!
wait_until 10 "the token" test -s "$work/token" || fail "the aggregator does not start"
token=$(head -n 1 "$work/token")
wait_until 60 "all ranks" has_ranks || fail "the aggregator does not show $ranks ranks"
sleep "$warm"

exec 3< <(exec "$load" bare)
bare_pid=$!
read -r bare_port <&3
job=$(get /api/v1/jobs | jq -r '.items | max_by(.live).id')
# WEIGHT NAME PATH: what a page, a dashboard and a probe ask for.
cat >"$work/mix" <<END
20 jobs /api/v1/jobs
20 slow-ranks /api/v1/slow-ranks
20 incidents /api/v1/incidents
10 nodes /api/v1/nodes?limit=100
10 ranks /api/v1/jobs/$job/ranks?limit=100
10 series /api/v1/jobs/$job/ranks/7/series?metric=own_seconds
10 healthz /healthz
END
sed 's|/.*|/64|' "$work/mix" >"$work/small"
while read -r weight name path; do
  echo "$weight $name /$(get "$path" | wc -c)"
done <"$work/mix" >"$work/bare"

ask() { # ask NAME PORT MIX
  "$load" ask "$2" "$rate" "$length" "$token" <"$work/$3" >>"$work/$1" || fail "the load for $1 failed"
}
: >"$work/judged"
for ((round = 1; round <= rounds; round++)); do
  ask small.out "$bare_port" small
  ask bare.out "$bare_port" bare
  before=$(metric windows_total) cpu=$(cpu_ms "$agg_pid") begin=$(now_ms)
  ask rest.out "$port" mix
  took=$(($(now_ms) - begin))
  echo "$(($(metric windows_total) - before)) $took $(($(cpu_ms "$agg_pid") - cpu))" >>"$work/judged"
done
kill -0 "$fill_pid" 2>/dev/null || fail "the data ended before the load did"
late=$(metric windows_unused_total)
incidents=$(get /api/v1/incidents | jq '.items | length')

awk -v ranks="$ranks" -v rate="$rate" -v aim="$aim_ms" -v late="$late" -v incidents="$incidents" '
function judge(is_met) { return is_met ? "met" : "missed" }
function row(name, key) {
  printf "%-24s %8d %6d %9d %8.2f %8.2f %8.2f %8.2f\n", name, count[key], errors[key], bytes[key], p50[key], p99[key], p999[key], most[key]
}
# Of all rounds: the worst of each figure, and the sum of requests and errors.
{
  kind = FILENAME
  sub(/.*\//, "", kind)
}
kind == "judged" { windows += $1; ms += $2; cpu += $3; next }
{
  key = kind " " $1
  if (kind == "rest.out" && !(key in count)) names[++n] = $1
  count[key] += $2
  errors[key] += $3
  bytes[key] = $4
  if ($5 > p50[key]) p50[key] = $5
  if ($6 > p99[key]) p99[key] = $6
  if ($7 > p999[key]) p999[key] = $7
  if ($8 > most[key]) most[key] = $8
}
END {
  printf "%-24s %8s %6s %9s %8s %8s %8s %8s   (ms; the worst round)\n", "requests", "number", "failed", "bytes", "median", "p99", "p99.9", "most"
  row("bare, 64 bytes", "small.out all")
  row("bare, as many bytes", "bare.out all")
  row("REST", "rest.out all")
  for (i = 1; i < n; i++) row("  " names[i], "rest.out " names[i])
  all = "rest.out all"
  share = windows / (ms / 1000) / (ranks / 0.528)
  printf "REST beside the bare reply: median %.1f, p99 %.1f times; beside one of as many bytes: %.1f, %.1f\n",
    p50[all] / p50["small.out all"], p99[all] / p99["small.out all"], p50[all] / p50["bare.out all"], p99[all] / p99["bare.out all"]
  printf "meanwhile %.0f windows a second, %.0f %% of what %d ranks send; %d not used; %d incidents; %.0f %% of a core\n",
    windows / (ms / 1000), share * 100, ranks, late, incidents, cpu / ms * 100
  good = p99[all] < aim && !errors[all] && share > 0.95
  printf "p99 at %d requests a second: %.1f ms; aim: under %d, %s\n", rate, p99[all], aim, judge(good)
  exit !good
}' "$work/small.out" "$work/bare.out" "$work/rest.out" "$work/judged"
