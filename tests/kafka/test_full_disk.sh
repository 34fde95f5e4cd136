#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Disks that are full. First the broker's, which ends it: agents wait in their shelters, and an
# aggregator loses its shards that has never saved a state before. Then the aggregator's own: it is
# killed while the incident that it has decided is in its memory alone, and then left running. Each is
# told clearly; with room again all goes on, and nothing is lost, learned anew or said twice.
. tests/kafka/scene.sh

[ "$(id -u)" -eq 0 ] || skip "root: needs file systems of its own"
small_disk store 8
small_disk broker 256
scene --version 3.9.1 --logs "$work/broker"
broker_is_gone() { ! kill -0 "$(cat "$NT_KAFKA/1/pid")" 2>/dev/null; }
start_one one --store "$work/store/store.db" --save-every 1h
begin=$SECONDS
start_feeder 4
afresh=$(starts_afresh)
sleep 14 # what is learned is learned by then

fill_disk broker
wait_until 30 "the broker to give up" broker_is_gone || fail "the broker goes on without a disk"
wait_until 20 "the feeder to use its shelter" is_away || fail "the feeder does not notice"
wait_until 20 "the aggregator to notice" is_unready_for one bus unreachable || fail "it says nothing: $(readyz one)"
bus_is_lost() { [ "$(metric one bus_well)" = 0 ]; }
wait_until 10 "the metric to follow" bus_is_lost || fail "the metric says that the bus is well"
[ "$(metric one bus_read_errors_total)" -gt 0 ] || fail "no metric counts the error"
grep -q "the bus '.*unreachable: no broker" "$work/log/one.log" || fail "no line tells of the bus"
# Found because they were healthy before: see test_aggregators.sh.
faults 8 8 0
wait_until 90 "the group to be lost" is_over one shards_lost_total 2 || fail "its shards stay"
empty_disk broker
tests/kafka/kafka.sh start
wait_until 60 "the alarms" told firing 2 || fail "it was learned anew: alarms are missing: $(messages firing)"
wait_until 40 "the shelter to be drained" is_drained || fail "the shelter is not drained: $(cat "$work/feeder/metrics")"
wait_until 20 "gaps to be filled" gaps_are_filled || fail "gaps remain: $(ask one /metrics | grep gaps)"
wait_until 20 "the aggregator to be ready" is_ready one || fail "it stays unready: $(readyz one)"
[ "$(metric one jobs_seen_total)" = 4 ] || fail "it has seen $(metric one jobs_seen_total) jobs of 4"
[ "$(starts_afresh)" = "$afresh" ] || fail "a shard was begun anew: $(cat "$work/log/one.log")"
echo "the broker goes on after $((SECONDS - begin)) s, $(fed stored) messages were in the shelter"

stop_one one
start_one one --store "$work/store/store.db"
full() { is_unready_for one store "disk is full"; }
unsaved() { is_over one store_unsaved_incidents 0; }
fill_disk store
faults 8 8 50 0
wait_until 30 "an incident in memory" unsaved || fail "nothing waits: $(ask one /metrics | grep unsaved)"
wait_until 10 "the aggregator to say that its disk is full" full || fail "it says nothing: $(readyz one)"
store_is_full() { [ "$(metric one store_healthy)" = 0 ]; }
wait_until 10 "the metric to follow" store_is_full || fail "the metric says that the store is well"
[ "$(messages firing | wc -l)" = 2 ] || fail "somebody is told of what is not stored"
sleep 4 # and a saving that fails: what the group has committed must not lead
grep -q "the store '.*disk is full" "$work/log/one.log" || fail "no line tells of the disk: $(cat "$work/log/one.log")"
stop_one one KILL
echo "killed after $((SECONDS - begin)) s with an incident in memory alone"
empty_disk store
start_one one --store "$work/store/store.db"
wait_until 40 "the alarm" told firing 3 || fail "an alarm is missing: $(messages firing)"

fill_disk store
faults 0 0 50 50
wait_until 30 "an incident in memory" unsaved || fail "nothing waits: $(ask one /metrics | grep unsaved)"
wait_until 10 "the aggregator to say that its disk is full" full || fail "it says nothing: $(readyz one)"
wait_until 30 "ends in memory" is_over one store_unsaved_incidents 2 || fail "no end waits: $(ask one /metrics | grep unsaved)"
[ "$(messages firing | wc -l) $(messages resolved | wc -l)" = "3 0" ] || fail "somebody is told of what is not stored"
empty_disk store
wait_until 30 "the alarm" told firing 4 || fail "an alarm is missing: $(messages firing)"
wait_until 30 "the ends" told resolved 2 || fail "ends are missing: $(messages resolved)"
wait_until 20 "the aggregator to be ready" is_ready one || fail "it stays unready: $(readyz one)"
echo "the store goes on after $((SECONDS - begin)) s"

stop_feeder
expect_told 4 2 0
[ "$(shown one | jq length)" = 4 ] || fail "not 4 incidents: $(shown one)"
[ "$(starts_afresh)" = "$afresh" ] || fail "a shard was begun anew: $(cat "$work/log/one.log")"
expect_no_gap
