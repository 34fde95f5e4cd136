#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Three aggregators share out the jobs of a real Kafka. One comes late, one is killed in the middle of
# its work, one leaves in good order and comes back. Every incident is there once, on each of them;
# each is told once when it fires and once when it ends.
set -euo pipefail

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh
programs=${bin%/*}/bin feeder=$bin/feeder
need "$programs/neutracer-aggregator" "$programs/neutracer" "$feeder" curl jq python3

jobs=6
work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
mkdir "$work/log"
declare -A pid=() ports=()
# Who is told to stop can still say what there is to say.
finish() {
  local status=$? name
  set +e
  for name in "${!pid[@]}"; do stop "${pid[$name]}"; done
  tests/kafka/kafka.sh down
  rm -rf "$kafka_dir"
  (exit "$status")
  cleanup
}
trap finish EXIT

kafka --nodes 1
url=kafka://$NT_TEST_KAFKA
"$programs/neutracer" topics create --bus "$url" >"$work/log/topics.log" 2>&1 || fail "the topics are not made"

python3 tests/e2e/receiver.py "$work/receiver" "$work/messages" &
children+=($!)
wait_until 10 "the receiver" test -s "$work/receiver" || fail "no receiver"
echo "http://127.0.0.1:$(cat "$work/receiver")/" >"$work/webhook"

is_ready() { curl -sf -o /dev/null "http://127.0.0.1:${ports[$1]}/readyz"; }

start_one() { # start_one NAME
  ports[$1]=${ports[$1]:-$(free_port)}
  "$programs/neutracer-aggregator" --bus "$url" --listen "127.0.0.1:${ports[$1]}" --member "$1" \
    --advertise "http://127.0.0.1:${ports[$1]}" --token-file "$work/token" --store "$work/$1.db" \
    --webhook-url-file "$work/webhook" --resolve-after 6s --save-every 3s \
    >>"$work/log/$1.log" 2>&1 &
  pid[$1]=$!
  children+=($!)
  wait_until 60 "aggregator $1 to be ready" is_ready "$1" || fail "aggregator $1 does not come up"
}

ask() { # ask NAME PATH
  curl -sf --max-time 10 -H "Authorization: Bearer $(head -n 1 "$work/token" | cut -d' ' -f1)" \
    "http://127.0.0.1:${ports[$1]}$2"
}

shown() { ask "$1" "/api/v1/incidents?limit=1000" | jq -c '[.items[] | [.id, .state, .summary]] | sort'; }
count_state() { ask "$1" "/api/v1/incidents?state=$2&limit=1000" | jq '.items | length'; }
has_all() { [ "$(count_state "$1" "$2")" -ge "$jobs" ]; }
messages() { jq -r "select(.type == \"incident.$1\") | .data.id" "$work/messages" | sort; }
some_told() { [ "$(wc -l <"$work/messages")" -ge 2 ]; }
all_told() { [ "$(messages "$1" | sort -u | wc -l)" -ge "$jobs" ]; }
metric() { # metric NAME METRIC
  ask "$1" /metrics | awk -v name="neutracer_aggregator_$2" '$1 == name { print $2 }'
}
owns_some() { [ "$(metric "$1" shards)" -gt 0 ]; }

start_one one
start_one two
"$feeder" "$url" "$jobs" 120 18 60 >"$work/log/feeder.log" 2>&1 &
children+=($!)
begin=$SECONDS
start_one three
for name in one two three; do
  wait_until 40 "aggregator $name to own something" owns_some "$name" || fail "$name owns nothing"
done
echo "shards: $(metric one shards), $(metric two shards) and $(metric three shards) of three"

# In the middle of its work: some incidents have fired, others are about to.
wait_until 60 "the first messages" some_told || fail "nobody is told of anything"
kill -9 "${pid[one]}"
wait "${pid[one]}" 2>/dev/null || :
echo "killed one after $((SECONDS - begin)) s, $(wc -l <"$work/messages") of $jobs alarms told"
wait_until 60 "all alarms" all_told firing || fail "alarms are missing: $(messages firing | tr '\n' ' ')"
echo "all $jobs alarms told after $((SECONDS - begin)) s"

stop "${pid[two]}"
start_one one
start_one two
wait_until 90 "all ends" all_told resolved || fail "ends are missing: $(messages resolved | tr '\n' ' ')"
echo "all $jobs ends told after $((SECONDS - begin)) s"
for name in one two three; do
  wait_until 30 "aggregator $name to show all" has_all "$name" resolved ||
    fail "aggregator $name shows $(count_state "$name" resolved) of $jobs"
done
sleep 5

for name in two three; do
  [ "$(shown "$name")" = "$(shown one)" ] || fail "one shows $(shown one), $name $(shown "$name")"
done
[ "$(shown one | jq length)" = "$jobs" ] || fail "not $jobs incidents: $(shown one)"
[ "$(count_state one firing)" = 0 ] || fail "one still shows open incidents"
for name in one two three; do
  found=$(ask "$name" "/api/v1/jobs?limit=1000" | jq '.items | length')
  [ "$found" = "$jobs" ] || fail "aggregator $name shows $found jobs of $jobs"
done

# A crash between sending and publishing may cost one repeat, and there was one crash.
repeats=$(($(messages firing | wc -l) + $(messages resolved | wc -l) - 2 * jobs))
[ "$repeats" -le 1 ] || fail "$repeats messages were repeated: $(messages firing) $(messages resolved)"
[ "$(messages firing | sort -u)" = "$(messages resolved | sort -u)" ] || fail "alarms and ends differ"
echo "three aggregators, one killed, one moved: $jobs incidents, $repeats repeats"
