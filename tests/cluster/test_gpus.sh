#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# GPUs by the kubelet's own word, of a device plugin that says nothing else: each container's one by its
# id, and of several the rank's by its place. The ranks with several are a real Open MPI job in one
# container: the slow one of them is named with pod, namespace, container, node, job and GPU. Its node gets the
# condition and the taint that the chart was asked for, until it is quiet.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

slow=2 # the rank

has_gpus() { [ "$(k get node node-1 -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$1" ]; }

up build/image/neutracer.tar build/cluster/rank.tar
"$cluster" start gpus
kafka up >/dev/null || fail "no Kafka"
helm install neutracer "$chart" -n "$space" --create-namespace --set "kafka.brokers={$brokers}" \
  --set agent.podResources=true --set "agent.kubeletDir=$state/kubelet" --set aggregator.options.resolve-after=10s \
  --set aggregator.kubernetes.nodeCondition=true --set aggregator.kubernetes.action=taint \
  --set aggregator.options.kube-action-after=1 --set aggregator.options.kube-action-quiet=1m \
  --wait --timeout 3m >"$work/install.log" 2>&1 || fail "helm install: $(cat "$work/install.log")"
wait_until 30 "the node to have GPUs" has_gpus 8 || fail "$("$cluster" logs)"
k create namespace science >/dev/null
sed "s|SHM|$state/shm|" tests/cluster/gpus.yaml | k apply -n science -f - >/dev/null
k wait -n science --for=condition=Ready pod --all --timeout=60s >/dev/null || fail "the jobs do not start"
pod=$(pod_of science job-name=mpi)

# What the plugin has told the container that it has.
given() { k exec -n science "$1" -c "$2" -- printenv STANDIN_GPUS; }
job_of() { api /api/v1/jobs | jq -r --arg name "$1" '.items[] | select(.name == $name and .live > 0) | .id'; }
# POD/CONTAINER=GPU of each rank of a job, in their order.
ranks() {
  local id
  id=$(job_of "$1") && [ -n "$id" ] &&
    api "/api/v1/jobs/$id/ranks" | jq -r '[.items | sort_by(.rank)[] | "\(.pod)/\(.container)=\(.gpu)"] | join(" ")'
}
are() { [ "$(ranks "$1")" = "$2" ]; }

# ---- who has which -------------------------------------------------------------------------------

first=$(given pair first) second=$(given pair second)
[[ $first == GPU-* && $second == GPU-* && $first != "$second" ]] || fail "the plugin gave '$first' and '$second'"
wait_until 60 "the pair" are pair "pair/first=$first pair/second=$second" || fail "the pair: $(ranks pair), of $(api /api/v1/jobs)"
ranks pair
[ "$(given "$pod" worker | tr ',' '\n' | sort -u | grep -c ^GPU-)" = 4 ] || fail "the job of MPI was given $(given "$pod" worker)"
wanted=$(for i in 0 1 2 3; do printf '%s/worker=cuda:%d ' "$pod" "$i"; done)
wait_until 60 "the MPI job" are mpi "${wanted% }" || fail "the MPI job's ranks: $(ranks mpi)"
ranks mpi

# ---- single calls, by a client that shares no code with this project ------------------------------

level() { "$cluster" exec "$NT_BIN/neutracer" level --server "$(server)" --token-file "$work/token" "$@"; }
server() { echo "http://$(k get service -n "$space" neutracer-aggregator -o 'jsonpath={.spec.clusterIP}'):9480"; }

token >"$work/token"
level pair 1 >"$work/level" || fail "level: $(cat "$work/level")"
sleep 12
# kcat ends where there are no further records.
level pair 0 >"$work/level" || fail "level: $(cat "$work/level")"
sleep 5
timeout 60 "$cluster" exec kcat -b "$brokers" -C -q -e -t neutracer.detail.v1 -f '%R%s' >"$work/detail" ||
  fail "the records do not end"
tests/e2e/detail.py 2 ncclAllReduce,cudaLaunchKernel job=pair namespace=science pod=pair pod_uid= container= node=node-1 \
  <"$work/detail" || fail "the records are not right"

# ---- a slow rank of MPI --------------------------------------------------------------------------

firing() { found=$(api /api/v1/slow-ranks | jq -c .items) && [ "$found" != '[]' ]; }

sleep 8
! firing || fail "somebody is accused although nobody is slow: $found"
echo "compute $slow 2" >"$state/shm/.faults" && mv "$state/shm/.faults" "$state/shm/faults"
start=$(now_ms)
wait_until 30 "the verdict" firing || fail "no verdict"
took=$(($(now_ms) - start))
wanted=$(jq -cn --arg pod "$pod" --argjson rank "$slow" \
  '[["rank", $rank, "compute", $pod, "science", "worker", "node-1", "mpi", "cuda:\($rank)"]]')
found=$(jq -c '[.[] | [.kind, .rank, .class, .pod, .namespace, .container, .node, .job, .gpu]]' <<<"$found")
[ "$found" = "$wanted" ] || fail "wanted $wanted, found $found"
echo "$(k exec -n science "$pod" -- mpirun --version | sed -n 1p): $found after $took ms"

# ---- what becomes of its node --------------------------------------------------------------------

node() { k get node node-1 -o json; }
is_degraded() { # is_degraded STATUS
  [ "$(node | jq -r '.status.conditions[] | select(.type == "NeuTracerDegraded") | .status')" = "$1" ]
}
taints() { node | jq -r '[.spec.taints[]? | select(.key == "neutracer.io/degraded") | .effect] | join(" ")'; }
is_tainted() { [ "$(taints)" = "$1" ]; }
aggregator_log() { k logs -n "$space" neutracer-aggregator-0 | grep -i 'kube' | tail -n 5; }

wait_until 60 "the condition" is_degraded True || fail "$(node | jq -c .status.conditions), $(aggregator_log)"
wait_until 60 "the taint" is_tainted NoSchedule || fail "taints: $(node | jq -c .spec.taints), $(aggregator_log)"
node | jq -c '[.status.conditions[] | select(.type == "NeuTracerDegraded")], .metadata.annotations["neutracer.io/incidents"]'
rm "$state/shm/faults"
wait_until 60 "the condition to end" is_degraded False || fail "$(node | jq -c .status.conditions)"
wait_until 180 "the taint to be undone" is_tainted '' || fail "taints: $(node | jq -c .spec.taints), $(aggregator_log)"
# For the limit of changes in an hour.
[ "$(k get node node-1 -o 'jsonpath={.metadata.labels.neutracer\.io/action}')" = lifted ] ||
  fail "labels: $(node | jq -c .metadata.labels)"
