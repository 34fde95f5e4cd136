#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The libraries of GPU time in pods with the label: what the API server stores, that pods start with them and
# load them, and that the agent measures them; no other pod is changed.
# shellcheck disable=SC2016 # $added and its kin are variables of jq
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up build/image/neutracer.tar build/cluster/rank.tar

added=neutracer-gpu-time
label=neutracer.io/gpu-time
library=/run/neutracer/gpu-time/libneutracer-cupti.so
plugin=${library%/*}/libnccl-profiler-neutracer.so

# Brokers that are not there: nothing here asks for them.
options=(--set gpuTime.enabled=true --set 'kafka.brokers={10.99.0.1:9}' --set kafka.topics.create=false
  --set agent.options.gpu-interval=0s)
helm install neutracer "$chart" -n "$space" --create-namespace "${options[@]}" >/dev/null || fail "helm install"
k create namespace training >/dev/null
k label namespace training pod-security.kubernetes.io/enforce=restricted >/dev/null

# pod NAME [FILTER]: a pod that passes the level restricted, as JSON. FILTER changes it.
pod() {
  jq -n --arg name "$1" --arg key "$label" '{apiVersion: "v1", kind: "Pod",
    metadata: {name: $name, labels: {($key): "true"}},
    spec: {terminationGracePeriodSeconds: 0, restartPolicy: "Never", automountServiceAccountToken: false,
      securityContext: {runAsNonRoot: true, seccompProfile: {type: "RuntimeDefault"}},
      containers: [{name: "rank", image: "neutracer.test/rank:1", imagePullPolicy: "IfNotPresent",
        command: ["sleep", "3600"],
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: ["ALL"]}, readOnlyRootFilesystem: true}}]}} |
    '"${2:-.}"
}
stored() { # stored NAMESPACE: what becomes of the pod on stdin, without keeping it
  k create --namespace "$1" --dry-run=server -f - -o json
}
# That there is nothing of ours in it, and that it is not refused.
unchanged() { # unchanged WHAT NAMESPACE FILTER
  local found
  found=$(pod same "$3" | stored "$2") || fail "$1 is refused"
  ! grep -qF "$added" <<<"$found" || fail "$1 is changed: $(jq -c .spec <<<"$found")"
  echo "unchanged: $1"
}
is() { # is WHAT FILTER FILE: FILTER holds for the pod in FILE
  jq -e --arg added "$added" --arg library "$library" --arg plugin "$plugin" "$2" "$3" >/dev/null || fail "$1: $(jq -c .spec "$3")"
}
# has_library [FILTER], lacks_library [FILTER]: whether a new pod is changed. One that is refused is neither.
has_library() { pod new "${1:-.}" | stored training >"$work/new" && grep -qF "$added" "$work/new"; }
lacks_library() { pod new "${1:-.}" | stored training >"$work/new" && ! grep -qF "$added" "$work/new"; }
wait_until 30 "the policy" has_library || fail "a pod with the label is not changed: $(k get mutatingadmissionpolicies -o yaml)"

# ---- what is stored ------------------------------------------------------------------------------

pod bare | stored training >"$work/bare"
is "a bare pod" '.spec.volumes == [{name: $added, emptyDir: {sizeLimit: "4Mi"}}] and
  ([.spec.initContainers[].name] == [$added]) and (.spec.containers[0] |
    .env == [{name: "CUDA_INJECTION64_PATH", value: $library}, {name: "NCCL_PROFILER_PLUGIN", value: $plugin}] and
    .volumeMounts == [{name: $added, mountPath: "/run/neutracer/gpu-time", readOnly: true}]) and
  .status.qosClass == "Burstable"' "$work/bare"

# Lists that the pod has are appended to. A container keeps what it has of the two variables, and one with both
# is left alone.
several='.spec.volumes = [{name: "scratch", emptyDir: {}}]
  | .spec.initContainers = [.spec.containers[0] * {name: "first", command: ["true"]}]
  | .spec.containers[0] as $rank
  | {name: "CUDA_INJECTION64_PATH", value: "/opt/other.so"} as $cuda | {name: "NCCL_PROFILER_PLUGIN", value: "other"} as $nccl
  | .spec.containers = [$rank * {name: "other", env: [$cuda, $nccl]},
      $rank * {name: "cuda", env: [$cuda]}, $rank * {name: "nccl", env: [$nccl]},
      $rank * {name: "more", env: [{name: "A", value: "a"}, {name: "A", value: "b"}],
        volumeMounts: [{name: "scratch", mountPath: "/scratch"}]}, $rank]'
pod several "$several" | stored training >"$work/several"
is "a pod with lists" '[.spec.volumes[].name] == ["scratch", $added] and
  [.spec.initContainers[].name] == ["first", $added] and
  ([.spec.containers[] | [.name] + [.env[] | .name + "=" + .value]] == [
    ["other", "CUDA_INJECTION64_PATH=/opt/other.so", "NCCL_PROFILER_PLUGIN=other"],
    ["cuda", "CUDA_INJECTION64_PATH=/opt/other.so", "NCCL_PROFILER_PLUGIN=" + $plugin],
    ["nccl", "NCCL_PROFILER_PLUGIN=other", "CUDA_INJECTION64_PATH=" + $library],
    ["more", "A=a", "A=b", "CUDA_INJECTION64_PATH=" + $library, "NCCL_PROFILER_PLUGIN=" + $plugin],
    ["rank", "CUDA_INJECTION64_PATH=" + $library, "NCCL_PROFILER_PLUGIN=" + $plugin]]) and
  ([.spec.containers[] | [.volumeMounts[]?.name]] ==
    [[], [$added], [$added], ["scratch", $added], [$added]])' "$work/several"

# Once: not when a stored pod is created again, nor by the policy of another release.
jq '.metadata = {name: "again", labels: .metadata.labels} | del(.status)' "$work/several" | stored training >"$work/again"
is "a pod that was changed already" '[.spec.volumes[].name] == ["scratch", $added]' "$work/again"
jq -S .spec "$work/several" >"$work/several.spec"
jq -S .spec "$work/again" | diff "$work/several.spec" - || fail "a second time changes it again"
other() { # other HELM OPTION...: the policy of a release elsewhere, for another label
  helm template other "$chart" -n elsewhere --show-only templates/gpu-time.yaml --set gpuTime.enabled=true \
    --set gpuTime.label=example.com/other "$@"
}
other_policy() { # its image has no library
  other --api-versions admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy \
    --set image.repository=neutracer.test/rank --set-string image.tag=1
}
other_policy | k apply -f - >/dev/null
of_other='.metadata.labels = {"example.com/other": "true"}'
wait_until 30 "the other release's policy" has_library "$of_other" || fail "the other release's policy changes nothing"
pod both '.metadata.labels["example.com/other"] = "true"' | stored training >"$work/both"
is "a pod of two policies" '[.spec.volumes[].name] == [$added] and [.spec.initContainers[].name] == [$added] and
  (.spec.containers[0] | (.env | length) == 2 and (.volumeMounts | length) == 1)' "$work/both"
echo "stored: volume, init container, mount and variables, once"

# The older version of the API, which Kubernetes 1.32 has, takes it word by word as well.
other --api-versions admissionregistration.k8s.io/v1alpha1/MutatingAdmissionPolicy |
  k apply --dry-run=server --validate=strict -f - >"$work/alpha" || fail "v1alpha1: $(cat "$work/alpha")"

unchanged "a pod without the label" training 'del(.metadata.labels)'
unchanged "a pod whose label says no" training ".metadata.labels[\"$label\"] = \"false\""
unchanged "a pod of the release's namespace" "$space" .
unchanged "a pod of kube-system" kube-system .
unchanged "a pod whose containers all have both variables" training \
  '.spec.containers[0].env = [{name: "NCCL_PROFILER_PLUGIN", value: "none"}, {name: "CUDA_INJECTION64_PATH", value: "/opt/other.so"}]'
unchanged "a pod that has something in the library's place" training \
  '.spec.volumes = [{name: "v", emptyDir: {}}] | .spec.containers[0].volumeMounts = [{name: "v", mountPath: "/run/neutracer/gpu-time"}]'
unchanged "a pod for Windows" default \
  '.spec.os.name = "windows" | del(.spec.securityContext, .spec.containers[0].securityContext)'
unchanged "the mirror of a static pod" default \
  '.metadata.annotations["kubernetes.io/config.mirror"] = "x" | .spec.nodeName = "node-1"'

# What docs/kubernetes.md says of limits.
k create namespace limited >/dev/null
k create -n limited -f - >/dev/null <<END
{apiVersion: v1, kind: LimitRange, metadata: {name: least}, spec: {limits: [{type: Container, min: {memory: 64Mi}}]}}
END
roomy='.spec.containers[0].resources = {requests: {memory: "128Mi"}, limits: {memory: "128Mi"}}'
! pod limited "$roomy" | stored limited >/dev/null 2>"$work/limited" || fail "a LimitRange does not count"
grep -q 'minimum memory usage per Container is 64Mi, but request is 32Mi' "$work/limited" || fail "$(cat "$work/limited")"

# ---- what runs -----------------------------------------------------------------------------------

k rollout status -n "$space" daemonset/neutracer-agent --timeout=90s >/dev/null || fail "the agent is not ready"
train='.spec.containers[0] += {args: ["--seconds", "3600"],
    env: [{name: "RANK", value: "0"}, {name: "WORLD_SIZE", value: "1"}, {name: "JOB_ID", value: "one"},
      {name: "LD_LIBRARY_PATH", value: "/opt/rank/lib"}, {name: "SIM_NCCL_VERSION", value: "2.30"}],
    volumeMounts: [{name: "shm", mountPath: "/dev/shm"}]}
  | .spec.volumes = [{name: "shm", emptyDir: {medium: "Memory"}}] | del(.spec.containers[0].command)'
pod train "$train" | k create -n training -f - >/dev/null
# A pod with whole processors for itself keeps them, and root is root.
pod guaranteed '.spec.containers[0].resources = {requests: {cpu: "200m", memory: "64Mi"}, limits: {cpu: "200m", memory: "64Mi"}}' |
  k create -n training -f - >/dev/null
pod root '.spec.securityContext = {runAsUser: 0, fsGroup: 3000}' | k create -n default -f - >/dev/null
loads() { # loads NAMESPACE/POD: what the variables name can be loaded there
  k exec -n "${1%/*}" "${1#*/}" -c rank -- python3 -c 'import ctypes, os, sys
ctypes.CDLL(os.environ["NCCL_PROFILER_PLUGIN"]).ncclProfiler_v6
sys.exit(ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() != 1)' ||
    fail "$1: the libraries cannot be loaded"
}
for name in training/train training/guaranteed default/root; do
  k wait -n "${name%/*}" --for=condition=Ready "pod/${name#*/}" --timeout=60s >/dev/null ||
    fail "$name does not start: $(k get pod -n "${name%/*}" "${name#*/}" -o 'jsonpath={.status}')"
  [ "$(k exec -n "${name%/*}" "${name#*/}" -c rank -- stat -c %a "$library" "$plugin" | xargs)" = '644 644' ] ||
    fail "$name: no libraries"
  loads "$name"
done
[ "$(k get pod -n training guaranteed -o 'jsonpath={.status.qosClass}')" = Guaranteed ] || fail "the QoS class is lost"
! k exec -n default root -c rank -- touch "${library%/*}/x" 2>/dev/null || fail "the library's place can be written"
trains() { pid=$(pid_of training "$1" train); } # trains POD: its process; sets pid
trains train || fail "no process 'train'"
grep -q "$library" "/proc/$pid/maps" || fail "the job has not loaded the library"
grep -q "$plugin" "/proc/$pid/maps" || fail "the job's NCCL has not loaded its plugin"
grep -qx neutracer-cupti "/proc/$pid"/task/*/comm || fail "the library has not started its thread"
for file in "$library" "$plugin"; do
  [ -z "$(command -v readelf)" ] || readelf -n "/proc/$pid/root$file" | grep -q 'Provider: neutracer' ||
    fail "the image's ${file##*/} has no mark"
  [ -z "$(command -v readelf)" ] || ! readelf -SW "/proc/$pid/root$file" | grep -q '\.debug_info' ||
    fail "the image's ${file##*/} is not stripped"
done

address=$(k get pod -n "$space" "$(component agent)" -o 'jsonpath={.status.podIP}')
metric() { "$cluster" exec curl -sf --max-time 5 "http://$address:9481/metrics" | sed -n "s/^neutracer_agent_$1 //p"; }
# The library opens CUPTI when the agent asks it to. The agent sees other processes of this machine, too.
is_measured() { grep -q 'libcupti\.so' "/proc/$pid/maps" && [ "$(metric gpu_intervals_total)" -gt 0 ]; }
wait_until 60 "the agent to measure the job" is_measured ||
  fail "the agent measures $(metric measured_gpu_processes) processes, $(metric gpu_intervals_total) intervals"
echo "the job has loaded the libraries, and the agent measures it"

# A job with another library in CUPTI's place has NCCL's plugin all the same.
pod nccl "$train"' | .spec.containers[0].env += [{name: "CUDA_INJECTION64_PATH", value: "/opt/rank/lib/none.so"}]' |
  k create -n training -f - >/dev/null
k wait -n training --for=condition=Ready pod/nccl --timeout=60s >/dev/null || fail "with another library a pod does not start"
wait_until 30 "the job with another library" trains nccl || fail "no process 'train' with another library"
has_plugin_alone() { grep -q "$plugin" "/proc/$pid/maps" && ! grep -q "$library" "/proc/$pid/maps"; }
wait_until 30 "the job to load NCCL's plugin" has_plugin_alone || fail "a job with another library has not NCCL's plugin alone"
is_measured_by_nccl() { [ "$(metric measured_nccl_processes)" -gt 0 ]; }
wait_until 60 "the agent to use NCCL's plugin" is_measured_by_nccl || fail "the agent does not use NCCL's plugin"
echo "a job with another library for CUDA has loaded NCCL's plugin alone, and the agent uses that"

# An image without the libraries keeps no pod from starting.
pod lacks "$train | $of_other" | k create -n training -f - >/dev/null
k wait -n training --for=condition=Ready pod/lacks --timeout=60s >/dev/null || fail "without the libraries a pod does not start"
wait_until 30 "the job without the libraries" trains lacks || fail "no process 'train' without the libraries"
echo "without the libraries in the image the pod starts all the same"

# Nor does a policy that fails.
other_policy | sed 's/string(variables.names.indexOf(c.name))/string(1 \/ 0)/' | k apply -f - >/dev/null
wait_until 30 "the policy that fails" lacks_library "$of_other" || fail "a policy that fails counts: $(cat "$work/new")"
echo "a policy that fails changes nothing and refuses nothing"
k delete mutatingadmissionpolicy,mutatingadmissionpolicybinding other-neutracer-elsewhere-gpu-time >/dev/null

# The lines for a pod in docs/kubernetes.md.
version=$(sed -n 's/^#define NT_VERSION "\(.*\)"$/\1/p' common/base/version.h)
sed -n '/^# GPU time by hand$/,/^```$/p' docs/kubernetes.md | grep -v '^```$' | sed "s/VERSION/$version/" |
  python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' >"$work/hand" || fail "no lines in the docs"
hand='del(.metadata.labels) | .spec = (.spec * ($hand[0].spec | del(.containers)))
  | .spec.containers[0] += $hand[0].spec.containers[0]'
pod hand | jq --slurpfile hand "$work/hand" "$hand" | k create -n default -f - >/dev/null
k wait -n default --for=condition=Ready pod/hand --timeout=60s >/dev/null || fail "the pod of the docs does not start"
loads default/hand
echo "the lines of docs/kubernetes.md do as well"

# ---- without NCCL's, chosen namespaces, and away -------------------------------------------------

helm upgrade neutracer "$chart" -n "$space" "${options[@]}" --set gpuTime.nccl=false >/dev/null
has_cuda_alone() { has_library . && ! grep -qi nccl "$work/new"; }
wait_until 30 "the policy without NCCL's plugin" has_cuda_alone || fail "NCCL's plugin is not left out"
is "a pod without NCCL's plugin" '.spec.containers[0].env == [{name: "CUDA_INJECTION64_PATH", value: $library}]' "$work/new"
echo "NCCL's plugin can be left out"
helm upgrade neutracer "$chart" -n "$space" "${options[@]}" --set gpuTime.namespaceSelector.matchLabels.gpu-time=on >/dev/null
wait_until 30 "the namespaces to be chosen" lacks_library || fail "a pod of a namespace that is not chosen is changed"
k label namespace training gpu-time=on >/dev/null
wait_until 30 "the namespace with the label" has_library || fail "a pod of a namespace that is chosen is not changed"
helm uninstall neutracer -n "$space" --wait --timeout 2m >/dev/null || fail "helm uninstall"
wait_until 30 "the policy to go" lacks_library || fail "pods are still changed"
[ -z "$(k get mutatingadmissionpolicies,mutatingadmissionpolicybindings -o name)" ] || fail "policies are left"
k wait -n training --for=condition=Ready pod/train --timeout=5s >/dev/null || fail "the job has ended with the release"
[ "$(k get pod -n training train -o 'jsonpath={.status.containerStatuses[0].restartCount}')" = 0 ] || fail "the job was restarted"
echo "namespaces can be chosen; after helm uninstall no pod is changed, and the job goes on"
