#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs on a bus that is not as it should be: nobody at the address, no topics, topics that are
# too small for a message. Each says so in one clear line, counts it, and goes on; an aggregator is
# not ready. With topics that are mended all is well, without a restart.
. tests/kafka/scene.sh

[ "$(id -u)" -eq 0 ] || skip "root: the agent loads probes"
[ -r /sys/kernel/btf/vmlinux ] || skip "root: this kernel has no type information"
scene --version 3.9.1
"$programs/neutracer" topics create --bus "$url/small" --partitions 1 >>"$work/log/topics.log" 2>&1 ||
  fail "the topics are not made"
limit_one() { # limit_one TOPIC BYTES
  tests/kafka/kafka.sh tool kafka.admin.ConfigCommand --alter --entity-type topics --entity-name "$1" \
    --add-config "max.message.bytes=$2" >"$work/log/$1.log" 2>&1
}
limit() { # limit BYTES: of a message, on two topics
  local other
  limit_one small.node.v1 "$1" &
  other=$!
  limit_one small.state.v1 "$1" || fail "small.state.v1 cannot be changed"
  wait "$other" || fail "small.node.v1 cannot be changed"
}
limit 100
"$programs/neutracer" topics check --bus "$url/small" >"$work/out/check" 2>&1 && fail "the check finds nothing"
grep -q 'max.message.bytes is 100' "$work/out/check" || fail "the check says: $(cat "$work/out/check")"

kafka_url=$url
start_agent nobody kafka://127.0.0.1:1
start_agent missing "$kafka_url/never-made"
start_agent small "$kafka_url/small"
url=kafka://127.0.0.1:1 run_one one
url=$kafka_url/never-made run_one two
url=$kafka_url/small run_one three

# counts AGENT METRIC
counts() { [ "$(agent_metric "$1" "$2")" -gt 0 ]; } 2>/dev/null
wanted() { # wanted CAUSE AGENT AGGREGATOR METRIC TEXT
  wait_until 30 "agent $2 to say why" says "agent-$2" "$5" || fail "it says: $(cat "$work/log/agent-$2.log")"
  wait_until 30 "agent $2 to count" counts "$2" "bus_errors_total{cause=\"$1\"}" ||
    fail "it counts: $(grep bus_errors "$work/agent-$2.prom")"
  wait_until 30 "aggregator $3 to be unready" is_unready_for "$3" bus "$1" || fail "it says: $(readyz "$3")"
  wait_until 30 "aggregator $3 to say why" says "$3" "$5" || fail "it says: $(cat "$work/log/$3.log")"
  [ "$(metric "$3" "$4")" -gt 0 ] || fail "no metric counts it: $(ask "$3" /metrics | grep bus)"
  [ "$(grep -c "$5" "$work/log/$3.log")" = 1 ] || fail "it repeats itself: $(cat "$work/log/$3.log")"
}
wanted unreachable nobody one bus_read_errors_total "no broker"
wanted no-topic missing two bus_read_errors_total "there is no topic"
wanted too-large small three bus_undelivered_total "too large for topic"
[ "$(agent_metric small shelter_away)" = 0 ] || fail "the bus is there, and yet its agent waits"
counts small 'shelter_refused_total{class="verdict"}' || fail "what is lost is not counted"
[ "$(agent_metric missing 'shelter_refused_total{class="verdict"}')" = 0 ] || fail "something was lost"
curl -sf -o /dev/null "http://127.0.0.1:${ports[one]}/healthz" || fail "it is not alive: $(readyz one)"

limit 1048588
"$programs/neutracer" topics create --bus "$kafka_url/never-made" --partitions 1 >>"$work/log/topics.log" 2>&1 ||
  fail "the topics are not made"
is_delivered() { [ "$(agent_metric "$1" shelter_away)" = 0 ] && counts "$1" bus_delivered_total; }
for name in two three; do
  wait_until 60 "aggregator $name to be ready" is_ready "$name" || fail "$name stays unready: $(readyz "$name")"
  wait_until 20 "aggregator $name to say so" says "$name" "the bus '.*' recovered" || fail "it says: $(cat "$work/log/$name.log")"
done
for name in missing small; do
  wait_until 30 "agent $name to go on" is_delivered "$name" || fail "agent $name delivers nothing"
done
echo "each trouble is told, and over when it is mended"
