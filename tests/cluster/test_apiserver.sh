#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent's watch of the pods of its node: it knows them, learns of new ones, lives through the API
# server's end, and goes on when that is back.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up build/image/neutracer.tar build/cluster/rank.tar

# Brokers that are not there: neither this nor the agent's readiness asks for them.
helm install neutracer "$chart" -n "$space" --create-namespace --set 'kafka.brokers={10.99.0.1:9}' \
  --set kafka.topics.create=false >/dev/null
k rollout status -n "$space" daemonset/neutracer-agent --timeout=90s >/dev/null || fail "the agent is not ready"
agent=$(component agent)
address=$(k get pod -n "$space" "$agent" -o 'jsonpath={.status.podIP}')

metrics() { "$cluster" exec curl -sf --max-time 5 "http://$address:9481/$1"; }
metric() { metrics metrics | sed -n "s/^neutracer_agent_$1 //p"; }
there() { k get pods --all-namespaces --field-selector spec.nodeName=node-1 -o name | wc -l; }
knows() { [ "$(metric kube_pods)" = "$1" ]; }
new_pod() { # new_pod NAME
  k run "$1" --image=neutracer.test/rank:1 --image-pull-policy=IfNotPresent --restart=Never --command -- sleep 3600 >/dev/null
  k wait --for=condition=Ready "pod/$1" --timeout=60s >/dev/null || fail "pod $1 does not start"
}
fails() { [ "$(metrics metrics | awk '/^neutracer_agent_kube_failed_total/ { n += $2 } END { print n + 0 }')" -gt "$1" ]; }

wait_until 30 "the pods to be known" knows "$(there)" || fail "pods known: $(metric kube_pods), there: $(there)"
new_pod first
wait_until 40 "a new pod to be known" knows "$(there)" || fail "pods known: $(metric kube_pods), there: $(there)"
lists=$(metric kube_lists_total)
known=$(metric kube_pods)
echo "pods known: $known, by $lists lists and $(metric kube_watches_total) watches"

failures=$(metrics metrics | awk '/^neutracer_agent_kube_failed_total/ { n += $2 } END { print n + 0 }')
"$cluster" kill apiserver
wait_until 30 "the agent to notice" fails "$failures" || fail "no failure is counted"
sleep 5
[ "$(metric kube_pods)" = "$known" ] || fail "without an API server pods are forgotten: $(metric kube_pods), were $known"
metrics readyz >/dev/null || fail "without an API server the agent is not ready"
"$cluster" start apiserver
wait_until 60 "the API server" k get --raw /readyz >/dev/null 2>&1 || fail "the API server does not come back"

start=$(now_ms)
new_pod second
wait_until 60 "the watch to go on" knows "$(there)" || fail "pods known: $(metric kube_pods), there: $(there)"
echo "after a restart of the API server: a new pod is known $(($(now_ms) - start)) ms after it was asked for," \
  "$(metric kube_lists_total) lists, $(metric kube_watches_total) watches"
[ "$(k get pod -n "$space" "$agent" -o 'jsonpath={.status.containerStatuses[0].restartCount}')" = 0 ] ||
  fail "the agent was restarted"
k delete pod first second --now >/dev/null
wait_until 30 "pods that are gone to be forgotten" knows "$(there)" || fail "pods known: $(metric kube_pods), there: $(there)"
