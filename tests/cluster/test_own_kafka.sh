#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The chart with a Kafka that is there, beside the cluster: TLS, a password and a user for each program
# with no more rights than the documentation names, by secrets that exist. Passwords change under it.
# The store is on a claim, which outlives its pod and, where it shall, the release. Then the same
# without anything that can be left out.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up build/image/neutracer.tar build/cluster/rank.tar
kafka up --secure >/dev/null || fail "no Kafka"
tls=$state/kafka/tls
declare -A user=([agent]=neutracer-agent [aggregator]=neutracer-aggregator)

password() { # password PROGRAM PASSWORD: what the brokers take from now on
  kafka tool kafka.admin.ConfigCommand --alter --add-config "SCRAM-SHA-512=[password=$2]" \
    --entity-type users --entity-name "${user[$1]}" >"$work/scram.log" 2>&1 || fail "$(cat "$work/scram.log")"
}
allow() { # allow PROGRAM OPTION...
  kafka tool kafka.admin.AclCommand --add --allow-principal "User:${user[$1]}" "${@:2}" >"$work/acl.log" 2>&1 ||
    fail "$(cat "$work/acl.log")"
}
topics() { printf -- '--topic neutracer.%s.v1 ' "$@"; }
secret() { # secret PROGRAM PASSWORD: what the programs say from now on
  k create secret generic "kafka-$1" -n "$space" --from-literal=password="$2" --dry-run=client -o yaml | k apply -f - >/dev/null
}
# Records in a topic, as the broker counts them.
records() {
  kafka tool org.apache.kafka.tools.GetOffsetShell --topic "neutracer.$1.v1" 2>/dev/null | awk -F: '{ n += $3 } END { print n + 0 }'
}

# What docs/operations.md names, and no more.
# shellcheck disable=SC2046 # several options
{
  allow agent --operation Write --operation Describe $(topics window node detail)
  allow agent --operation Read $(topics control)
  allow aggregator --operation Read $(topics window node detail incident state control dlq) --group neutracer-aggregator
  allow aggregator --operation Write $(topics incident state control dlq)
}
k create namespace "$space" >/dev/null
k create secret generic kafka-tls -n "$space" --from-file=ca.crt="$tls/ca.pem" >/dev/null
k create secret generic kafka-admin -n "$space" --from-file=password="$tls/password" >/dev/null
for program in agent aggregator; do
  password $program first
  secret $program first
done
mkdir -m 777 "$state/disk"
sed "s|DISK|$state/disk|" tests/cluster/volume.yaml | k apply -f - >/dev/null
cat >"$work/values.yaml" <<END
kafka:
  brokers: ["$brokers"]
  tls: {enabled: true, existingSecret: kafka-tls}
  sasl:
    user: neutracer
    existingSecret: kafka-admin
    agent: {user: ${user[agent]}, existingSecret: kafka-agent}
    aggregator: {user: ${user[aggregator]}, existingSecret: kafka-aggregator}
aggregator:
  persistence: {enabled: true, storageClass: by-hand}
END

# ---- in by secrets that exist --------------------------------------------------------------------

start=$(now_ms)
helm install neutracer "$chart" -n "$space" --values "$work/values.yaml" --wait --timeout 3m >"$work/install.log" 2>&1 ||
  fail "helm install: $(cat "$work/install.log")"
echo "installed and ready after $(($(now_ms) - start)) ms"
for pod in $(k get pods -n "$space" -l app.kubernetes.io/component=topics -o name); do
  k logs -n "$space" "$pod" --previous 2>/dev/null || : # if it had to try again
done
# The slow rank of this job, slow from the first step, makes an incident.
echo "compute 1 2" >"$state/shm/faults"
k create namespace science >/dev/null
sed "s|SHM|$state/shm|; /nvidia/d; /^---/,\$d" tests/cluster/gpus.yaml | k apply -n science -f - >/dev/null

agent=$(component agent) aggregator=neutracer-aggregator-0
address() { k get pod -n "$space" "$1" -o 'jsonpath={.status.podIP}'; }
ready() { [ "$(k get pod -n "$space" "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
# Of the pod itself: the Service leads only to who is ready.
ask() { # ask PATH
  "$cluster" exec curl -sf --max-time 5 -H "Authorization: Bearer $(token)" "http://$(address $aggregator):9480$1"
}
bus() { # bus CAUSE: what readyz says of it
  "$cluster" exec curl -s --max-time 5 "http://$(address $aggregator):9480/readyz" |
    jq -e --arg cause "$1" '.checks[] | select(.name == "bus" and (.ok | not) and (.detail | startswith("\($cause): ")))' >/dev/null
}
incidents() { ask "/api/v1/incidents" | jq -r '[.items[].id] | sort | join(" ")'; }
has_incident() { known=$(incidents) && [ -n "$known" ]; }
# All that it did; another job's may have come since.
knows() {
  local now id
  now=" $(incidents) "
  for id in $known; do
    [[ $now == *" $id "* ]] || return 1
  done
}
says() { [[ $(k logs -n "$space" "$1") =~ $2 ]]; }

wait_until 90 "an incident" has_incident || fail "no incident: $(ask /api/v1/jobs)"
for topic in window node incident; do
  [ "$(records $topic)" -gt 0 ] || fail "there are no records in $topic"
done
echo "records: window $(records window), node $(records node), incident $(records incident); incidents: $known"

# ---- a claim, and other passwords ----------------------------------------------------------------

# The broker forgets who is connected when it ends.
for program in agent aggregator; do password $program second; done
kafka kill
k delete pod -n science --all --now >/dev/null
uid=$(k get pod -n "$space" $aggregator -o 'jsonpath={.metadata.uid}')
k delete pod -n "$space" $aggregator >/dev/null
is_new() { [[ $(k get pod -n "$space" $aggregator -o 'jsonpath={.metadata.uid} {.status.phase}' 2>/dev/null) == +([0-9a-f-])" Running" ]] &&
  [ "$(k get pod -n "$space" $aggregator -o 'jsonpath={.metadata.uid}')" != "$uid" ]; }
wait_until 60 "another aggregator" is_new || fail "the aggregator's pod does not come back"
# Nobody but the claim can have told it.
wait_until 30 "the store" knows || fail "after its pod went the store has: $(incidents), had $known"
echo "a new pod without Kafka: $(incidents)"

kafka start
wait_until 60 "the refusal" bus refused || fail "readyz: $("$cluster" exec curl -s "http://$(address $aggregator):9480/readyz")"
ready $aggregator False || fail "who is refused is ready"
wait_until 30 "the aggregator's log" says $aggregator ': refused: ' || fail "$(k logs -n "$space" $aggregator)"
wait_until 120 "the agent's log" says "$agent" ': refused: ' || fail "$(k logs -n "$space" "$agent")"
ready "$agent" True || fail "the agent's readiness asks for Kafka"
for pod in $aggregator "$agent"; do k logs -n "$space" "$pod" | grep ': refused: ' | tail -n 1; done
before=$(records node)
for program in agent aggregator; do secret $program second; done
start=$(now_ms)
wait_until 90 "the aggregator to be let in" ready $aggregator True || fail "$(k logs -n "$space" $aggregator --tail 5)"
publishes() { [ "$(records node)" -gt "$before" ]; }
wait_until 60 "the agent to be let in" publishes || fail "$(k logs -n "$space" "$agent" --tail 5)"
echo "changed secrets are taken up after $(($(now_ms) - start)) ms"
k get pod -n "$space" $aggregator "$agent" -o json | jq -e '[.items[].status.containerStatuses[].restartCount] | add == 0' >/dev/null ||
  fail "a container was restarted"
knows || fail "incidents: $(incidents), were $known"

# ---- a claim that is kept ------------------------------------------------------------------------

claim() { k get persistentvolumeclaim -n "$space" data-$aggregator -o 'jsonpath={.status.phase}' 2>/dev/null; }
helm upgrade neutracer "$chart" -n "$space" --values "$work/values.yaml" \
  --set aggregator.persistence.whenDeleted=Retain >/dev/null || fail "helm upgrade"
ours() { k get persistentvolumeclaim -n "$space" data-$aggregator -o 'jsonpath={.metadata.ownerReferences[*].kind}'; }
is_free() { [ -z "$(ours)" ]; }
wait_until 30 "the claim to be let go" is_free || fail "the claim belongs to a $(ours)"
helm uninstall neutracer -n "$space" --wait --timeout 2m >/dev/null
wait_until 60 "the pods to go" pods_are_gone "$space" || fail "pods are left"
[ "$(claim)" = Bound ] || fail "the claim is '$(claim)' after the release went"

# ---- without all that can be left out ------------------------------------------------------------

# The listener of the brokers' own asks nobody for anything.
k delete secret -n "$space" kafka-tls kafka-admin kafka-agent kafka-aggregator >/dev/null
k create secret generic neutracer-token -n "$space" --from-literal=token="$(openssl rand -hex 24)" >/dev/null
before=$(records node)
start=$(now_ms)
helm install neutracer "$chart" -n "$space" --values tests/chart/values/all-off.yaml \
  --set "kafka.brokers={${brokers%:*}:$((${brokers#*:} + 2))}" --set aggregator.token.existingSecret=neutracer-token \
  --set aggregator.persistence.enabled=true,aggregator.persistence.storageClass=by-hand \
  --wait --timeout 3m >"$work/install.log" 2>&1 || fail "helm install: $(cat "$work/install.log")"
echo "with all off installed and ready after $(($(now_ms) - start)) ms"
wait_until 60 "the agent to publish" publishes || fail "$(k logs -n "$space" "$(component agent)" --tail 5)"
knows || fail "with the claim that was kept: $(incidents), were $known"
k delete secret -n "$space" neutracer-token >/dev/null # ours, not the chart's
uninstall
echo "the claim was kept, found again, and went with the second release"
