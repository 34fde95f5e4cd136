#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real Alertmanager: an incident of a real aggregator fires, is repeated beyond its expiry, and is resolved; an
# alert of an aggregator that was killed ends by itself. The same of the alert on the job by a real Prometheus. Both
# are restarted meanwhile. No agent runs: windows are played onto the spool.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/e2e/alertmanager.sh
. tests/e2e/alertmanager.sh
# shellcheck source=tests/e2e/prometheus.sh
. tests/e2e/prometheus.sh

feeder=${NT_FEEDER:-build/release/test-kafka/feeder}
[ "$(id -u)" -eq 0 ] || skip "root: Alertmanager needs a mount namespace of its own"
fetch_alertmanager || skip "debian: the package prometheus-alertmanager cannot be fetched"
fetch_prometheus || skip "debian: the package prometheus cannot be fetched"
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
start_alertmanager() {
  (run_alertmanager "$am" "$work/am.yaml" "$work/am" >>"$work/log/alertmanager.log" 2>&1) &
  children+=($!)
  am_pid=$!
  wait_until 20 "Alertmanager" curl -sf -o /dev/null "http://127.0.0.1:$am/-/ready" || fail "no Alertmanager"
}
start_alertmanager

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

write_bearer "$work/token" "$work/bearer"
write_rules "$work"
cat >"$work/prometheus.yaml" <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$work/rules.yaml", "$work/job-alerts.yaml"]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:$am"]}]}]}
scrape_configs:
  - job_name: aggregator
    authorization: {credentials_file: "$work/bearer"}
    static_configs: [{targets: ["127.0.0.1:$port"]}]
CONFIG
web=$(free_port)
start_prometheus() {
  (run_prometheus "$web" "$work/prometheus.yaml" "$work/data" >>"$work/log/prometheus.log" 2>&1) &
  children+=($!)
  web_pid=$!
}
start_prometheus

active() { # active COUNT [ALERT]
  [ "$(curl -sf "http://127.0.0.1:$am/api/v2/alerts?active=true" | jq --arg name "${2:-NeuTracerIncident}" \
    '[.[] | select(.labels.alertname == $name and .status.state == "active")] | length')" -eq "$1" ]
}
fingerprints() { # fingerprints ALERT [STATUS]: one of each alert of a message
  jq -r --arg name "$1" --arg status "${2:-}" '.alerts[] |
    select(.labels.alertname == $name and ($status == "" or .status == $status)) | .fingerprint' "$work/messages"
}
sent() { # sent firing|resolved COUNT [ALERT]
  [ "$(fingerprints "${3:-NeuTracerIncident}" "$1" | wc -l)" -ge "$2" ]
}

sleep 12 # what is healthy
active 0 || fail "an alert of a healthy job"
active 0 NeutracerJobSlow || fail "an alert of a healthy job in Prometheus"
echo 80 >"$work/feed/faults"
wait_until 60 "the alert" active 1 || fail "no alert"
wait_until 10 "its message" sent firing 1 || fail "Alertmanager sent no message"
wait_until 10 "the alert of Prometheus" active 1 NeutracerJobSlow || fail "no alert of Prometheus"
wait_until 10 "its message" sent firing 1 NeutracerJobSlow || fail "Alertmanager sent no message of Prometheus' alert"
alert=$(curl -sf "http://127.0.0.1:$am/api/v2/alerts" | jq '.[] | select(.labels.alertname == "NeutracerJobSlow")')
jq -e '.labels | .rank == "5" and .class == "host" and .severity == "critical" and .job_id' <<<"$alert" >/dev/null ||
  fail "$alert"
jq -r .annotations.summary <<<"$alert" | grep -qE 'takes [1-9]\.[0-9]+ times .* rank 5 on node ' || fail "$alert"
alert=$(curl -sf "http://127.0.0.1:$am/api/v2/alerts" | jq '.[] | select(.labels.alertname == "NeuTracerIncident")')
[ "$(jq -r .labels.severity <<<"$alert")" = critical ] || fail "$alert"
jq -r .annotations.who <<<"$alert" | grep -q '^rank 5 on node ' || fail "$alert"
stop "$web_pid"
start_prometheus
stop "$am_pid" # it keeps what it has sent
start_alertmanager
sleep $((5 * repeat)) # longer than an alert lives that is not repeated
active 1 || fail "the alert was not repeated"
active 1 NeutracerJobSlow || fail "Prometheus' alert was not repeated"
sent resolved 1 && fail "it was resolved meanwhile"
sent resolved 1 NeutracerJobSlow && fail "Prometheus' alert was resolved meanwhile"
curl -sf -H "Authorization: Bearer $(cut -d' ' -f1 "$work/token")" "http://127.0.0.1:$port/metrics" >"$work/metrics"
grep -q '^neutracer_aggregator_receiver_messages_total{receiver="am",kind="alertmanager",result="repeated"} [1-9]' "$work/metrics" ||
  fail "no repeat is counted: $(grep receiver_messages "$work/metrics")"
echo 0 >"$work/feed/faults"
wait_until 60 "the end of the alert" active 0 || fail "the alert does not end"
wait_until 10 "the message of its end" sent resolved 1 || fail "Alertmanager sent no resolved message"
wait_until 10 "the end of Prometheus' alert" active 0 NeutracerJobSlow || fail "Prometheus' alert does not end"
wait_until 10 "the message of its end" sent resolved 1 NeutracerJobSlow || fail "no resolved message of Prometheus' alert"
for name in NeuTracerIncident NeutracerJobSlow; do
  [ "$(fingerprints $name | sort -u | wc -l)" -eq 1 ] || fail "$name: $(cat "$work/messages")"
  [ "$(fingerprints $name firing | wc -l)" -eq 1 ] || fail "$name was sent again after a restart: $(cat "$work/messages")"
done

echo 80 >"$work/feed/faults"
wait_until 60 "the second alert" active 1 || fail "no second alert"
stop "$agg_pid" KILL
agg_pid=''
wait_until $((8 * repeat)) "the alert of a dead aggregator to end" active 0 || fail "it stays"
wait_until 10 "the alert of its job to end" active 0 NeutracerJobSlow || fail "Prometheus' alert stays"
echo "fired, repeated for $((5 * repeat)) s, resolved; and expired without its aggregator"
