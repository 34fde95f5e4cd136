#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The evaluation Kafka loses all: its container is restarted, so that leaders are counted up, and then its
# pod is replaced, so that its topics are others of the same names. Agents and aggregator, with the
# librdkafka of the image, go on by themselves, and the next slow rank is named.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

ranks=8 slow=5

fault() { printf '%s\n' "$@" >"$state/shm/.faults" && mv "$state/shm/.faults" "$state/shm/faults"; }
ready() { [ "$(k get pod -n "$space" "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
restarted() { [ "$(k get pod -n "$space" "$1" -o 'jsonpath={.status.containerStatuses[?(@.name=="kafka")].restartCount}')" = 1 ] && ready "$1"; }
replaced() { [ "$(k get pod -n "$space" "$1" -o 'jsonpath={.metadata.uid}')" != "$2" ] && ready "$1"; }
is_seen() { [ "$(ask /api/v1/jobs | jq "[.items[] | select(.state == \"running\" and .live == $ranks)] | length")" = 1 ]; }
# Of the pod itself: the Service leads only to who is ready.
ask() {
  "$cluster" exec curl -s --max-time 5 -H "Authorization: Bearer $(token)" \
    "http://$(k get pod -n "$space" neutracer-aggregator-0 -o 'jsonpath={.status.podIP}'):9480$1"
}
windows() { ask /metrics | awk '$1 == "neutracer_aggregator_messages_total" { print $2 }'; }
more_than() { local now && now=$(windows) && [ "${now:-0}" -gt "$1" ]; }
firing() { found=$(ask /api/v1/slow-ranks | jq -c '[.items[] | [.rank, .class]]') && [ "$found" != '[]' ]; }

up build/image/neutracer.tar build/cluster/kafka.tar build/cluster/rank.tar
install
k create namespace training >/dev/null
sed "s|SHM|$state/shm|" tests/cluster/job.yaml | k apply -n training -f - >/dev/null
wait_until 90 "the ranks to be seen" is_seen || fail "jobs: $(ask /api/v1/jobs)"

pod=$(component kafka)
uid=$(k get pod -n "$space" "$pod" -o 'jsonpath={.metadata.uid}')
aggregator=$(k get pod -n "$space" "$(component aggregator)" -o 'jsonpath={.metadata.uid}')
k exec -n "$space" "$pod" -c kafka -- sh -c "kill 1" || :
wait_until 120 "the broker to be restarted" restarted "$pod" || fail "$(k describe pod -n "$space" "$pod")"
had=$(windows)
wait_until 60 "windows over the restarted broker" more_than "$((had + 10))" || fail "still $(windows) windows"
k delete pod -n "$space" "$pod" --wait=false >/dev/null
wait_until 120 "another Kafka" replaced "$pod" "$uid" || fail "$(k describe pod -n "$space" "$pod")"
start=$(now_ms) had=$(windows)
wait_until 120 "windows over the other Kafka" more_than "$((had + 10))" || fail "still $(windows) windows"
echo "windows come again $(($(now_ms) - start)) ms after another Kafka was ready"
wait_until 30 "all ranks" is_seen || fail "jobs: $(ask /api/v1/jobs)"
sleep 8
! firing || fail "somebody is accused although nobody is slow: $found"
fault "compute $slow 2"
# A producer that such a broker tells of a wrong sequence is made anew: what it has waits in the shelter.
wait_until 90 "the verdict" firing || fail "no verdict"
[ "$found" = "[[$slow,\"compute\"]]" ] || fail "wanted rank $slow, found $found"
[ "$(k get pod -n "$space" "$(component aggregator)" -o 'jsonpath={.metadata.uid}')" = "$aggregator" ] ||
  fail "the aggregator was replaced"
k get pods -n "$space" -o json |
  jq -e '[.items[].status.containerStatuses[] | select(.name != "kafka" and .name != "topics") | .restartCount] | add == 0' >/dev/null ||
  fail "a container was restarted"
