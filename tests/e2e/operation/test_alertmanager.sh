#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real Alertmanager: an incident of a real aggregator fires, is repeated beyond its expiry, and is resolved; an
# alert of an aggregator that was killed ends by itself. No agent runs: windows are played onto the spool.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/e2e/alertmanager.sh
. tests/e2e/alertmanager.sh

feeder=${NT_FEEDER:-build/release/test-kafka/feeder}
[ "$(id -u)" -eq 0 ] || skip "root: Alertmanager needs a mount namespace of its own"
fetch_alertmanager || skip "debian: the package prometheus-alertmanager cannot be fetched"
need "$bin/neutracer-aggregator" "$feeder" curl jq unshare
work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
control=$work/control # for start_aggregator
mkdir "$control" "$work/log" "$work/spool" "$work/feed"
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

am=$(free_port)
cat >"$work/am.yaml" <<AM
route: {receiver: hook, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: hook, webhook_configs: [{url: "http://127.0.0.1:PORT/hook", send_resolved: true}]}]
AM
tests/e2e/receiver.py "$work/receiver.port" "$work/messages" &
children+=($!)
wait_until 40 "the receiver" test -s "$work/receiver.port" || fail "no receiver"
sed -i "s/PORT/$(cat "$work/receiver.port")/" "$work/am.yaml"
(run_alertmanager "$am" "$work/am.yaml" "$work/am" >"$work/log/alertmanager.log" 2>&1) &
children+=($!)
wait_until 20 "Alertmanager" curl -sf -o /dev/null "http://127.0.0.1:$am/-/ready" || fail "no Alertmanager"

repeat=2 # seconds; an alert lives for four of them
cat >"$work/receivers.yaml" <<RECEIVERS
receivers:
  - name: am
    kind: alertmanager
    urls: ["http://127.0.0.1:$am"]
    repeat: ${repeat}s
RECEIVERS
echo 0 >"$work/feed/faults"
"$feeder" "spool:$work/spool" 1 "$work/feed" 2>"$work/log/feeder.log" &
children+=($!)
start_aggregator --receivers-file "$work/receivers.yaml" --resolve-after 3s

active() { # active COUNT
  [ "$(curl -sf "http://127.0.0.1:$am/api/v2/alerts?active=true" |
    jq '[.[] | select(.labels.alertname == "NeuTracerIncident" and .status.state == "active")] | length')" -eq "$1" ]
}
sent() { # sent firing|resolved COUNT
  [ "$(jq -r ".alerts[] | select(.status == \"$1\") | .fingerprint" "$work/messages" | wc -l)" -ge "$2" ]
}

sleep 12 # what is healthy
active 0 || fail "an alert of a healthy job"
echo 80 >"$work/feed/faults"
wait_until 60 "the alert" active 1 || fail "no alert"
wait_until 10 "its message" sent firing 1 || fail "Alertmanager sent no message"
alert=$(curl -sf "http://127.0.0.1:$am/api/v2/alerts" | jq '.[0]')
[ "$(jq -r .labels.severity <<<"$alert")" = critical ] || fail "$alert"
jq -r .annotations.who <<<"$alert" | grep -q '^rank 5 on node ' || fail "$alert"
sleep $((5 * repeat)) # longer than an alert lives that is not repeated
active 1 || fail "the alert was not repeated"
sent resolved 1 && fail "it was resolved meanwhile"
curl -sf -H "Authorization: Bearer $(cut -d' ' -f1 "$work/token")" "http://127.0.0.1:$port/metrics" |
  grep -q '^neutracer_aggregator_receiver_messages_total{receiver="am",kind="alertmanager",result="repeated"} [1-9]' ||
  fail "no repeat is counted"
echo 0 >"$work/feed/faults"
wait_until 60 "the end of the alert" active 0 || fail "the alert does not end"
wait_until 10 "the message of its end" sent resolved 1 || fail "Alertmanager sent no resolved message"
[ "$(jq -r '.alerts[].fingerprint' "$work/messages" | sort -u | wc -l)" -eq 1 ] || fail "$(cat "$work/messages")"

echo 80 >"$work/feed/faults"
wait_until 60 "the second alert" active 1 || fail "no second alert"
stop "$agg_pid" KILL
agg_pid=''
wait_until $((8 * repeat)) "the alert of a dead aggregator to end" active 0 || fail "it stays"
echo "fired, repeated for $((5 * repeat)) s, resolved; and expired without its aggregator"
