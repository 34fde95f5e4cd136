#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Three aggregators share out the jobs of a real Kafka. One comes late, one is killed in the middle of
# its work, one leaves in good order. Then the broker is away for longer than the group waits for
# anybody; the one that left comes back as the broker does, so that partitions move while the agents'
# shelters are drained. Every incident is there once, on each of them; each is told once when it
# fires and once when it ends.
#
# That nothing is learned anew shows in the last three jobs: in the outage a rank becomes 8 % slower
# than it was. Healthy ranks differ as much, so who had not seen it before would find nothing; and who
# starts afresh is told not to read what is older than itself (--rewind). The seventh job is such a
# job, slow from its first window: nobody is accused. No shard may start afresh after the beginning.
. tests/kafka/scene.sh

show_all() { # show_all STATE COUNT
  local name
  for name in one two three; do
    wait_until 30 "aggregator $name to show all" has_state "$name" "$1" "$2" ||
      fail "aggregator $name shows $(count_state "$name" "$1") of $2 $1"
  done
}
owns_some() { is_over "$1" shards 0; }
share_out() {
  local name
  for name; do
    wait_until 60 "aggregator $name to own something" owns_some "$name" || fail "$name owns nothing"
  done
}

scene --nodes 1
start_one one
start_one two
start_feeder 7 0 0 0 0 0 0 8
begin=$SECONDS
start_one three
share_out one two three
afresh=$(starts_afresh)
echo "shards: $(metric one shards), $(metric two shards) and $(metric three shards) of three"
while ((SECONDS - begin < 14)); do sleep 0.2; done

# In the middle of its work: some incidents have fired, others are about to.
faults 50 50 50 0 0 0 8
wait_until 60 "the first message" told firing 1 || fail "nobody is told of anything"
stop_one one KILL
echo "killed one after $((SECONDS - begin)) s, $(messages firing | wc -l) of 3 alarms told"
wait_until 60 "the alarms" told firing 3 || fail "alarms are missing: $(messages firing | tr '\n' ' ')"
echo "all 3 alarms told after $((SECONDS - begin)) s"
start_one one
stop_one two
share_out one three

lost=$(metric three shards_lost_total)
tests/kafka/kafka.sh kill
wait_until 20 "the feeder to use its shelter" is_away || fail "the feeder does not notice"
wait_until 20 "the aggregator to notice" is_unready_for three bus unreachable || fail "it says nothing: $(readyz three)"
faults 50 50 50 8
wait_until 90 "the group to be lost" is_over three shards_lost_total "$lost" || fail "its shards stay"
sleep 8
tests/kafka/kafka.sh start
run_one two
wait_until 60 "the new alarms" told firing 6 || fail "it was learned anew: alarms are missing: $(messages firing | tr '\n' ' ')"
echo "3 more alarms told after $((SECONDS - begin)) s"
faults 0 0 0 0 0 0 8
wait_until 60 "all ends" told resolved 6 || fail "ends are missing: $(messages resolved | tr '\n' ' ')"
echo "all ends told after $((SECONDS - begin)) s, $(fed stored) messages were in the shelter"
wait_until 30 "the shelter to be drained" is_drained || fail "the shelter is not drained: $(cat "$work/feeder/metrics")"
for name in one two three; do
  wait_until 20 "aggregator $name to be ready" is_ready "$name" || fail "$name stays unready: $(readyz "$name")"
done
share_out one two three
show_all resolved 6
sleep 3

for name in two three; do
  [ "$(shown "$name")" = "$(shown one)" ] || fail "one shows $(shown one), $name $(shown "$name")"
done
[ "$(shown one | jq length)" = 6 ] || fail "not 6 incidents: $(shown one)"
[ "$(count_state one firing)" = 0 ] || fail "one still shows open incidents"
for name in one two three; do
  found=$(ask "$name" "/api/v1/jobs?limit=1000" | jq '.items | length')
  [ "$found" = 7 ] || fail "aggregator $name shows $found jobs of 7"
done
[ "$(starts_afresh)" = "$afresh" ] || fail "a shard was begun anew: $(cat "$work"/log/*.log)"
# A crash between sending and publishing may cost one repeat, and there was one crash.
expect_told 6 6 1
stop_feeder
expect_no_gap
