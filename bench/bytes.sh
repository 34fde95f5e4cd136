#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What an agent really sends: bytes that a Kafka stores a rank and second, of the simulated training job
# watched live, its topics' segments counted when all is acknowledged.
#
#   bench/bytes.sh [RANKS] [SECONDS]     (8 ranks, 40 s)
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh
bin=build/release/bin ranks=${1:-8} seconds=${2:-40}

setup
finish() {
  local status=$?
  set +e
  stop "$job_pid"
  for pid in "${agent_pid[@]}"; do stop "$pid"; done
  tests/kafka/kafka.sh down
  rm -rf "$kafka_dir"
  (exit "$status")
  cleanup
}
trap finish EXIT

stored() { # stored TOPIC: bytes in its segments
  cat "$NT_KAFKA/1/logs/neutracer.$1.v1"-*/*.log | wc -c
}
windows() { awk '/^neutracer_agent_windows_total/ { sum += $2 } END { printf "%.0f", sum }' "$work/agent.prom"; }

kafka --nodes 1
"$bin/neutracer" topics create --bus "kafka://$NT_TEST_KAFKA" >"$work/log/topics.log" 2>&1 || fail "the topics are not made"
start_job train "$ranks"
"$bin/neutracer-agent" --bus "kafka://$NT_TEST_KAFKA" --node here --shelter "$work/shelter" \
  --metrics-file "$work/agent.prom" >"$work/log/agent.log" 2>&1 &
agent_pid[here]=$!
wait_until 30 "the agent to watch" test -s "$work/agent.prom" || fail "the agent does not come up"
sleep 10 # the job's steps are known
begin=$(now_ms) window=$(stored window) node=$(stored node) count=$(windows)
sleep "$seconds"
took=$(($(now_ms) - begin)) window=$(($(stored window) - window)) node=$(($(stored node) - node)) count=$(($(windows) - count))
end_job
[ "$count" -gt 0 ] || fail "no windows were sent"
awk -v window="$window" -v node="$node" -v ms="$took" -v ranks="$ranks" -v count="$count" 'BEGIN {
  printf "%.0f bytes a rank and second (%.0f a window, %.2f windows a rank and second), %.0f a node and second\n",
    window * 1000 / ms / ranks, window / count, count * 1000 / ms / ranks, node * 1000 / ms
}'
