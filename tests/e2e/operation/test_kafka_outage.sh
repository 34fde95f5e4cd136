#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job on a real Kafka, whose only broker is killed and comes back after 20 s; in the middle of it
# the agent is killed too. Nobody is accused for that, and an independent count finds every sequence
# number, but for the last of what was killed. A level set before is in force after it.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

command -v java >/dev/null || skip "kafka: no Java: 'make deps' installs it"
command -v kcat >/dev/null || skip "kafka: no kcat: 'make deps' installs it"
if ! command -v mvn >/dev/null && [ ! -d "${NT_KAFKA_JARS:-$HOME/.cache/neutracer-kafka}" ]; then
  skip "kafka: no Maven to fetch Kafka with: 'make deps' installs it"
fi

setup
# shellcheck source=tests/kafka/ports.sh
. tests/kafka/ports.sh
claim_ports || fail "no ports for Kafka"
export NT_KAFKA=$work/kafka
finish() {
  local status=$?
  tests/kafka/kafka.sh down || :
  (exit $status)
  cleanup
}
trap finish EXIT
servers=$(tests/kafka/kafka.sh up) || fail "Kafka does not come up"
bus=kafka://$servers
"$bin/neutracer" topics create --bus "$bus" --partitions 3 >"$work/log/topics.log" 2>&1 ||
  fail "topics cannot be made"

# metric NAME: the sum over its labels.
metric() {
  awk -v name="$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { print sum + 0 }' \
    "$work/agent-node-a.prom"
}
aggregator_metric() {
  api /metrics | awk -v name="$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { print sum + 0 }'
}
is_away() { [ "$(metric neutracer_agent_shelter_away)" = 1 ]; }
is_drained() {
  [ "$(metric neutracer_agent_shelter_away)" = 0 ] && [ "$(metric neutracer_agent_shelter_bytes)" = 0 ]
}
gaps_are_filled() {
  [ "$(aggregator_metric neutracer_aggregator_gaps_total)" = \
    "$(aggregator_metric neutracer_aggregator_gaps_filled_total)" ]
}
losses() {
  local name sum=0
  for name in evicted expired corrupt dropped refused; do
    sum=$((sum + $(metric "neutracer_agent_shelter_${name}_total")))
  done
  echo $((sum + $(metric neutracer_agent_messages_dropped_total)))
}

stay_apart
start_aggregator --bus "$bus"
watch() { start_agent node-a --bus "$bus" --shelter "$work/shelter"; }
watch
start_job train 4
seen 4
are_levels() { [ "$(ranks | jq -c '[.[] | .level]')" = "$1" ]; }
"$bin/neutracer" level --server "http://127.0.0.1:$port" --token-file "$work/token" "$job_name/2" 1 --ttl 1h
wait_until 30 "the level of rank 2" are_levels '[0,0,1,0]' || fail "levels $(ranks | jq -c '[.[] | .level]')"
quiet 6

begin=$(now_ms)
tests/kafka/kafka.sh kill
wait_until 40 "the agent to notice" is_away || fail "the agent does not notice that the broker is away"
echo "noticed after $(($(now_ms) - begin)) ms"
quiet 8
killed_ms=$(now_ms)
lost=$(losses)
stop_agent node-a KILL
watch
[ "$(metric neutracer_agent_shelter_found_total)" -gt 0 ] || fail "the shelter was empty after the kill"
quiet 8
tests/kafka/kafka.sh start
begin=$(now_ms)
wait_until 60 "the shelter to be drained" is_drained || fail "the shelter is not drained"
echo "drained after $(($(now_ms) - begin)) ms"
quiet 5
wait_until 20 "gaps to be filled" gaps_are_filled || fail "gaps remain: $(api /metrics | grep gaps)"
no_incident
wait_until 30 "the level after the outage" are_levels '[0,0,1,0]' || fail "levels $(ranks | jq -c '[.[] | .level]')"
[ "$(api "/api/v1/jobs/$job_id" | jq .live)" = 4 ] || fail "the job is not whole: $(api "/api/v1/jobs/$job_id")"
end_job || fail "the job failed"
stop_agent node-a
lost=$((lost + $(losses)))
[ "$lost" = 0 ] || fail "$lost messages were lost, and counted: the shelter had room"
kcat -b "$servers" -C -q -e -t neutracer.window.v1 -f '%R%s' >"$work/out/windows"
tests/e2e/sequences.py "$killed_ms" <"$work/out/windows" || fail "sequence numbers are missing"
kcat -b "$servers" -C -q -e -t neutracer.node.v1 -f '%R%s' >"$work/out/nodes"
tests/e2e/sequences.py 0 <"$work/out/nodes" || fail "sequence numbers of nodes are missing"
