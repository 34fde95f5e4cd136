# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# For the tests on a real Kubernetes and the demo: brings one up with the images that are asked for,
# and takes it away with the script, Ctrl-C too. Sourced from the root of the tree.
#
#   NT_KEEP=1   leave the cluster: `tests/cluster/cluster.sh down` ends it
set -euo pipefail

cluster=tests/cluster/cluster.sh
state=${NT_CLUSTER:-/run/neutracer-cluster}
chart=deploy/helm/neutracer
space=neutracer # the namespace of the release, which has the same name
work='' is_up=''

skip() {
  echo "skip: cluster: $1"
  exit 77
}

fail() {
  [ -z "$is_up" ] || what_goes_on >&2 || :
  # Last: who runs many tests shows the end of what one has printed.
  echo "FAILED: $*" >&2
  exit 1
}

# For whoever reads what a failed test has printed.
what_goes_on() {
  local where pod container state
  k get pods --all-namespaces -o wide
  k get events --all-namespaces --field-selector type=Warning | tail -n 15
  k get pods --all-namespaces -o 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}' |
    while read -r where pod; do
      echo "== $pod"
      k logs -n "$where" "$pod" --all-containers --tail=6 </dev/null
    done
  k get pods --all-namespaces -o json | jq -r '.items[] | .metadata as $pod | .status.containerStatuses[]? |
      select(.restartCount > 0) | "\($pod.namespace) \($pod.name) \(.name) \(.lastState | tojson)"' |
    while read -r where pod container state; do
      echo "== $pod: container $container was restarted: $state"
      k logs -n "$where" "$pod" -c "$container" --previous --tail=10 </dev/null
    done
}

k() { "$cluster" kubectl "$@"; }
helm() { "$cluster" helm "$@"; }

# shellcheck disable=SC2317 # by a trap
cleanup() {
  local status=$?
  trap '' INT TERM HUP
  trap - EXIT
  set +e
  if [ -n "$is_up" ]; then
    if [ -n "${NT_KEEP:-}" ]; then
      echo "left: a cluster in $state"
    else
      [ ! -d "$state/kafka" ] || kafka down
      "$cluster" down
    fi
  fi
  [ -z "$work" ] || rm -rf "$work"
  exit "$status"
}

# up IMAGE.tar...: a cluster that has these images.
up() {
  local image reason
  [ "$(id -u)" -eq 0 ] || skip "needs root"
  [ -r /sys/kernel/btf/vmlinux ] || skip "this kernel has no type information"
  reason=$("$cluster" build 2>&1) || skip "${reason#*: }"
  for image; do [ -f "$image" ] || skip "there is no $image: 'make cluster-images' builds it"; done
  # One at a time on a machine.
  exec 8>/run/lock/neutracer-cluster
  flock -w 900 8 || skip "another test has the cluster"
  work=$(mktemp -d)
  trap cleanup EXIT
  trap 'exit 130' INT TERM HUP
  "$cluster" down 8>&-
  "$cluster" up >/dev/null 8>&- || fail "the cluster does not come up"
  is_up=1
  for image; do "$cluster" load "$image" >/dev/null || fail "cannot load $image"; done
  mkdir -m 1777 "$state/shm" # of the pods of a job
}

# A Kafka beside the cluster, as tests/kafka/kafka.sh has it: its pods reach it at the node's address.
brokers=10.99.0.1:9092
kafka() {
  "$cluster" exec env NT_KAFKA="$state/kafka" NT_KAFKA_HOST="${brokers%:*}" NT_KAFKA_PORT="${brokers#*:}" \
    tests/kafka/kafka.sh "$@" 8>&-
}

now_ms() { date +%s%3N; }

# wait_until SECONDS WHAT COMMAND...
wait_until() {
  local end=$(($(now_ms) + $1 * 1000)) what=$2
  shift 2
  until "$@"; do
    [ "$(now_ms)" -lt "$end" ] || {
      echo "gave up waiting: $what" >&2
      return 1
    }
    sleep 0.2
  done
}

# shellcheck disable=SC2120 # options may be none
# install [HELM OPTION...]: the chart, with the Kafka of the tests.
install() {
  helm install neutracer "$chart" --namespace "$space" --create-namespace --values tests/cluster/values.yaml \
    --wait --timeout 4m "$@" >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2 && fail "helm install"; }
}

# The one pod that a selector finds.
pod_of() { # pod_of NAMESPACE SELECTOR
  k get pods -n "$1" -l "$2" --field-selector status.phase=Running -o 'jsonpath={.items[0].metadata.name}'
}

component() { pod_of "$space" "app.kubernetes.io/component=$1"; }

# The processes of a pod's containers, as the node numbers them. Not those that only hold its namespaces.
pids_of() { # pids_of NAMESPACE POD
  local uid file
  uid=$(k get pod -n "$1" "$2" -o 'jsonpath={.metadata.uid}')
  for file in /proc/[0-9]*/cgroup; do
    grep -qs "/pod$uid/" "$file" || continue
    file=${file#/proc/}
    [ "$(cat "/proc/${file%/cgroup}/comm")" = sleep ] || echo "${file%/cgroup}"
  done
}

# Commands that were executed in the pod are in it, too.
pid_of() { # pid_of NAMESPACE POD COMMAND
  local pid
  for pid in $(pids_of "$1" "$2"); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$3" ] || {
      echo "$pid"
      return
    }
  done
  return 1
}

# What a process has of the kernel's BPF: programs, maps, links, as "prog 12".
bpf_of() { # bpf_of PID
  { cat /proc/"$1"/fdinfo/* 2>/dev/null || :; } | sed -n 's/^\(prog\|map\|link\)_id:[ \t]*/\1 /p' | sort -u
}

# bpf_is_gone FILE: none of what bpf_of has said is there any more.
bpf_is_gone() {
  local kind id
  while read -r kind id; do
    ! bpftool "$kind" show id "$id" >/dev/null 2>&1 || return 1
  done <"$1"
}

pods_are_gone() { [ -z "$(k get pods -n "$1" -o name)" ]; }

# What the agent has in the kernel, to be looked for when it is gone.
remember_probes() {
  bpf_of "$(pid_of "$space" "$(component agent)" neutracer-agent)" >"$work/bpf"
  [ -s "$work/bpf" ] || fail "the agent has nothing in the kernel"
}

# Looks for what may have been left: objects, pods, probes, claims.
nothing_is_left() {
  local kinds left
  wait_until 60 "the pods to go" pods_are_gone "$space" || fail "pods are left"
  wait_until 20 "the probes to go" bpf_is_gone "$work/bpf" || fail "left in the kernel: $(cat "$work/bpf")"
  kinds=$(k api-resources --verbs=list -o name | grep -v -e '^events' -e '^componentstatuses' -e '^endpoints$' | paste -sd,)
  left=$(k get "$kinds" --all-namespaces -l app.kubernetes.io/instance=neutracer -o name) || fail "cannot list all objects"
  [ -z "$left" ] || fail "left: $left"
  left=$(k get configmaps,secrets,serviceaccounts,persistentvolumeclaims,leases -n "$space" -o name |
    grep -v -e '/kube-root-ca.crt$' -e '^serviceaccount/default$') || :
  [ -z "$left" ] || fail "left in the namespace: $left"
}

# Takes the release away.
uninstall() {
  remember_probes
  helm uninstall neutracer -n "$space" --wait --timeout 2m >/dev/null
  nothing_is_left
}

token() {
  k get secret -n "$space" neutracer-token -o 'jsonpath={.data.token}' | base64 -d | sed -n 1p | cut -d' ' -f1
}

# api PATH: through the Service, as a pod would ask.
api() {
  local address
  address=$(k get service -n "$space" neutracer-aggregator -o 'jsonpath={.spec.clusterIP}')
  "$cluster" exec curl -sf --max-time 10 -H "Authorization: Bearer $(token)" "http://$address:9480$1"
}
