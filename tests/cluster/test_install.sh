#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The chart on a cluster: the API server takes everything that it renders, pods pass the security level
# that they claim and have the capabilities that they name; install, test, upgrade, rollback, uninstall;
# and the same without Helm.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up build/image/neutracer.tar build/cluster/kafka.tar

# ---- what is rendered is valid -------------------------------------------------------------------

# Word by word, for every set of values, and with a warning of the level restricted for the agent alone.
python3 tests/chart/server.py "$(tests/chart/helm.sh)" "$cluster" kubectl >"$work/objects.tap" || fail "$(cat "$work/objects.tap")"
echo "sets of values that the API server takes: $(grep -c '^ok' "$work/objects.tap")"

# ---- pod security --------------------------------------------------------------------------------

for level in restricted baseline; do
  k create namespace "$level" >/dev/null
  k label namespace "$level" "pod-security.kubernetes.io/enforce=$level" >/dev/null
done
helm template neutracer "$chart" -n "$space" --values tests/chart/values/default.yaml >"$work/default.yaml"
k create --dry-run=client -o json -f "$work/default.yaml" | jq -s '[.[] | if .kind == "List" then .items[] else . end]' >"$work/objects"
# A pod of the template, without what only its controller gives it.
pods() { # pods FILTER NAMESPACE
  jq --arg namespace "$2" "[.[] | select($1) | {apiVersion: \"v1\", kind: \"Pod\",
    metadata: {name: .metadata.name, namespace: \$namespace},
    spec: ((.spec.template.spec // .spec) | del(.serviceAccountName))}] | {apiVersion: \"v1\", kind: \"List\", items: .}" \
    "$work/objects"
}
pods '.kind == "StatefulSet" or .kind == "Job" or .kind == "Pod"' restricted | k create --dry-run=server -f - >"$work/pods" ||
  fail "a pod does not pass the level restricted"
[ "$(wc -l <"$work/pods")" -ge 3 ] || fail "pods tried: $(cat "$work/pods")"
echo "restricted: $(wc -l <"$work/pods") pods"
# The agent looks at other processes, and that is all that baseline has against it.
! pods '.kind == "DaemonSet"' baseline | k create --dry-run=server -f - >/dev/null 2>"$work/agent" ||
  fail "the agent passes the level baseline"
reasons=$(sed 's/.*violates PodSecurity "[^"]*": //; s/ ([^)]*)//g' "$work/agent")
echo "baseline refuses the agent for: $reasons"
grep -q 'host namespaces (hostPID=true)' "$work/agent" || fail "$(cat "$work/agent")"
! grep -qE 'privileged|hostNetwork|hostIPC|hostPath|hostPort|procMount|sysctls' <<<"$reasons" || fail "the agent wants more: $reasons"

# ---- install -------------------------------------------------------------------------------------

start=$(now_ms)
install # as it is
echo "installed and ready after $(($(now_ms) - start)) ms"
capabilities=(agent 000000c000080004 aggregator 0000000000000000 kafka 0000000000000000)
for ((i = 0; i < ${#capabilities[@]}; i += 2)); do
  pod=$(component "${capabilities[i]}")
  pids=$(pids_of "$space" "$pod")
  [ -n "$pids" ] || fail "$pod has no processes"
  for pid in $pids; do
    for set in CapPrm CapEff CapBnd; do
      grep -q "^$set:.${capabilities[i + 1]}$" "/proc/$pid/status" ||
        fail "$pod: $(cat "/proc/$pid/comm") has $(grep "^$set" "/proc/$pid/status")"
    done
    grep -q '^NoNewPrivs:.1$' "/proc/$pid/status" || fail "$pod could gain privileges"
    [ "${capabilities[i]}" = agent ] || ! grep -q '^Uid:.0' "/proc/$pid/status" || fail "$pod runs as root"
  done
  [ "$(k get pod -n "$space" "$pod" -o json | jq '[.spec.containers[].securityContext.privileged // false] | any')" = false ] ||
    fail "$pod is privileged"
done
for name in agent aggregator; do
  ! k exec -n "$space" "$(component $name)" -c $name -- touch /somewhere 2>/dev/null || fail "the root of $name can be written"
done
helm test neutracer -n "$space" --timeout 2m >"$work/test.log" 2>&1 || fail "helm test: $(cat "$work/test.log")"
k exec -n "$space" "$(component agent)" -- cat /usr/share/doc/neutracer/sbom.spdx.json |
  jq -e '.spdxVersion == "SPDX-2.3" and ([.packages[].name] | index("librdkafka1") != null)' >/dev/null ||
  fail "the image does not say what it is made of"

# ---- upgrade and back ----------------------------------------------------------------------------

token=$(token)
agent=$(component agent)
version() { helm history neutracer -n "$space" -o json | jq -r '.[-1] | "\(.revision) \(.status)"'; }
setting() { k exec -n "$space" "$(component aggregator)" -- sed -n 's/^resolve-after: //p' /etc/neutracer/aggregator.yaml; }
api /api/v1/jobs >/dev/null || fail "the Service does not answer"

helm upgrade neutracer "$chart" -n "$space" --values tests/cluster/values.yaml --set aggregator.options.resolve-after=30s \
  --wait --timeout 3m >/dev/null || fail "helm upgrade"
[ "$(version)" = '2 deployed' ] || fail "after the upgrade: $(version)"
[ "$(setting)" = '"30s"' ] || fail "the upgrade's setting: $(setting)"
[ "$(token)" = "$token" ] || fail "the upgrade made another token"
[ "$(component agent)" = "$agent" ] || fail "an upgrade that does not touch the agents has replaced one"
api /api/v1/jobs >/dev/null || fail "the Service does not answer after the upgrade"

helm rollback neutracer 1 -n "$space" --wait --timeout 3m >/dev/null || fail "helm rollback"
[ "$(version)" = '3 deployed' ] || fail "after the rollback: $(version)"
[ -z "$(setting)" ] || fail "after the rollback: $(setting)"
[ "$(token)" = "$token" ] || fail "the rollback made another token"
api /api/v1/jobs >/dev/null || fail "the Service does not answer after the rollback"
k get pods -n "$space" -o json | jq -e '[.items[].status.containerStatuses[].restartCount] | add == 0' >/dev/null ||
  fail "a container was restarted"

# ---- signed messages -----------------------------------------------------------------------------

helm upgrade neutracer "$chart" -n "$space" --values tests/cluster/values.yaml --set signatures.mode=require \
  --wait --timeout 3m >/dev/null || fail "helm upgrade to signatures"
counted() { # counted METRIC: of the aggregator
  api /metrics | awk -v name="neutracer_aggregator_$1" '$1 == name { print $2 }'
}
agent=$(component agent)
signed() { # messages that the agent signed
  local address
  address=$(k get pod -n "$space" "$agent" -o 'jsonpath={.status.podIP}')
  "$cluster" exec curl -s --max-time 10 "http://$address:9481/metrics" |
    awk '$1 == "neutracer_agent_messages_signed_total" { print $2 }'
}
is_signed() {
  [ "$(counted 'enrol_reviews_total{result="granted"}')" -gt 0 ] && [ "$(signed)" -gt 0 ]
}
wait_until 60 "signed messages" is_signed ||
  fail "no agent got a key: $(k logs -n "$space" "$agent" -c agent --tail=5)"
# What was on the bus before the agents had their keys is refused, and nothing that came behind it.
refused() { counted 'records_refused_total{why="without-signature"}'; }
is_all_signed() {
  local before_refused before_signed
  before_refused=$(refused) before_signed=$(signed)
  sleep 8
  [ "$(refused)" -eq "$before_refused" ] && [ "$(signed)" -gt "$before_signed" ]
}
wait_until 90 "nothing but signed messages" is_all_signed || fail "messages are sent unsigned: $(refused)"
# A key for nobody else: not for another account, nor another audience, nor a token of no pod, nor another node.
address=$(k get service -n "$space" neutracer-aggregator -o 'jsonpath={.spec.clusterIP}')
key_for() { # key_for TOKEN NODE: the status of the answer
  "$cluster" exec curl -s -o "$work/answer" -w '%{http_code}' --max-time 10 -H "Authorization: Bearer $1" \
    -H 'Content-Type: application/json' -d "{\"node\": \"$2\"}" "http://$address:9480/api/v1/node-keys"
}
is_answered() { [ "$(key_for "$1" "$2")" != 202 ]; }
no_key() { # no_key WHAT TOKEN NODE
  wait_until 20 "an answer to $1" is_answered "$2" "$3" || fail "$1: the token is not reviewed"
  [ "$(key_for "$2" "$3")" = 403 ] || fail "$1: $(cat "$work/answer")"
  echo "no key for $1: $(jq -r .detail "$work/answer")"
}
mounted=/run/neutracer/enrolment/token
projected=$("$cluster" exec cat "/proc/$(pid_of "$space" "$agent" neutracer-agent)/root$mounted")
k create serviceaccount -n "$space" stranger >/dev/null
no_key "another account" "$(k create token -n "$space" stranger --audience neutracer)" node-1
no_key "another audience" "$(k create token -n "$space" neutracer-agent --bound-object-kind Pod --bound-object-name "$agent")" node-1
no_key "a token of no pod" "$(k create token -n "$space" neutracer-agent --audience neutracer)" node-1
no_key "another node" "$projected" node-2
no_key "no token at all" "x.y.z" node-1
wait_until 20 "an answer" is_answered "$projected" node-1 || fail "the agent's own token is not reviewed"
[ "$(key_for "$projected" node-1)" = 200 ] ||
  fail "the agent's own token: $(cat "$work/answer")"
k delete serviceaccount -n "$space" stranger >/dev/null

# ---- and away ------------------------------------------------------------------------------------

uninstall
echo "installed, tested, upgraded, rolled back, signed, uninstalled: nothing is left"

# ---- without Helm, as docs/kubernetes.md says it -------------------------------------------------

# By the name that the default values have for it.
"$cluster" exec ctr -a "$state/containerd.sock" -n k8s.io image tag neutracer.test/kafka:3.9.1 docker.io/apache/kafka:3.9.1 >/dev/null
k delete namespace "$space" >/dev/null
start=$(now_ms)
k apply -f deploy/k8s/namespace.yaml >/dev/null
k -n neutracer create secret generic neutracer-token --from-literal=token="$(openssl rand -hex 32)" >/dev/null
k apply -f deploy/k8s/neutracer.yaml >/dev/null
for object in daemonset/neutracer-agent statefulset/neutracer-kafka statefulset/neutracer-aggregator; do
  k rollout status -n "$space" "$object" --timeout=2m >"$work/rollout" || fail "$(cat "$work/rollout")"
done
echo "without Helm ready after $(($(now_ms) - start)) ms"
api /api/v1/jobs >/dev/null || fail "the Service does not answer"
remember_probes
k delete -f deploy/k8s/neutracer.yaml -f deploy/k8s/namespace.yaml >/dev/null || fail "kubectl delete"
! k get namespace "$space" >/dev/null 2>&1 || fail "the namespace is left"
nothing_is_left
