#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A webhook receiver gets exactly one firing and one resolved message for an incident, also when it
# was away at first and the aggregator is restarted meanwhile. The incident is over when the rank has been
# healthy for the minute of the default --resolve-after.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
tests/e2e/receiver.py "$work/receiver.port" "$work/messages" 1 &
children+=($!)
wait_until 40 "the receiver" test -s "$work/receiver.port" || fail "no receiver"
(umask 077 && echo "http://127.0.0.1:$(cat "$work/receiver.port")/hook" >"$work/url")

messages() { jq -r "select(.type == \"incident.$1\") | .data.id" "$work/messages" | wc -l; }
has_message() { [ "$(messages "$1")" -ge 1 ]; }

start_aggregator --webhook-url-file "$work/url"
stay_apart # other jobs of the machine send messages of their own
start_agent here
start_job train 8
seen 8
quiet 5
rank=$(draw 8)
fault "compute $rank 1.8"
expect 60 "a slow rank" compute "$rank"
wait_until 30 "the firing message" has_message firing || fail "no firing message"
stop "$agg_pid"
agg_pid=''
start_aggregator --webhook-url-file "$work/url"
healed=$SECONDS
heal
[ $((SECONDS - healed)) -ge 55 ] || fail "resolved $((SECONDS - healed)) s after the rank was healed, want a minute"
wait_until 30 "the resolved message" has_message resolved || fail "no resolved message"
quiet_end=$((SECONDS + 5))
while [ $SECONDS -lt $quiet_end ]; do sleep 0.5; done
end_job || fail "the job failed"
[ "$(messages firing)-$(messages resolved)" = 1-1 ] || fail "messages: $(cat "$work/messages")"
[ "$(jq -r .data.id "$work/messages" | sort -u | wc -l)" -eq 1 ] || fail "messages: $(cat "$work/messages")"
[ "$(jq -r .data.culprits[0].rank "$work/messages" | sort -u)" = "$rank" ] || fail "messages: $(cat "$work/messages")"
echo "one firing and one resolved message for $(jq -r .data.id "$work/messages" | sed -n 1p)"
