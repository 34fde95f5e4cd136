#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Three brokers, of which one is cut off for 20 s, with its connections open, and another one killed.
# What goes through the group's coordinator, a share of the windows, incidents and states has to find
# another way. Every incident comes once, no sequence number is missing, and all is well afterwards.
. tests/kafka/scene.sh

coordinator() { # the broker that leads the group: worst to lose
  kcat -b "$NT_TEST_KAFKA" -L -J -t __consumer_offsets | jq '.topics[0].partitions[0].leader'
}

all_is_read() {
  [ "$(metric one lag_records)" = 0 ]
}

scene --version 4.1.1 --nodes 3
start_one one
start_feeder 6
begin=$SECONDS
sleep 8

frozen=$(coordinator)
tests/kafka/kafka.sh freeze "$frozen"
faults 50 50 50 0
echo "broker $frozen, which leads the group, is cut off"
sleep 20
echo "within 20 s $(messages firing | wc -l) of 3 alarms are told, $(fed stored) messages in the shelter"
tests/kafka/kafka.sh thaw "$frozen"
wait_until 60 "all alarms" told firing 3 || fail "alarms are missing: $(messages firing)"
wait_until 40 "the aggregator to be ready" is_ready one || fail "it stays unready: $(readyz one)"
echo "all alarms told and ready after $((SECONDS - begin)) s"

killed=$((frozen % 3 + 1))
faults 0 0 0 50 50 0
tests/kafka/kafka.sh kill "$killed"
wait_until 60 "the other alarms" told firing 5 || fail "alarms are missing: $(messages firing)"
tests/kafka/kafka.sh start "$killed"
wait_until 60 "the ends" told resolved 3 || fail "ends are missing: $(messages resolved)"
wait_until 40 "the shelter to be drained" is_drained || fail "the shelter is not drained: $(cat "$work/feeder/metrics")"
wait_until 20 "gaps to be filled" gaps_are_filled || fail "gaps remain: $(ask one /metrics | grep gaps)"
wait_until 20 "the aggregator to be ready" is_ready one || fail "it stays unready: $(readyz one)"
echo "the ends told after $((SECONDS - begin)) s"

stop_feeder
expect_told 5 3 0
[ "$(shown one | jq length)" = 5 ] || fail "not 5 incidents: $(shown one)"
wait_until 30 "all to be read" all_is_read || fail "it lags by $(metric one lag_records) records"
expect_no_gap
