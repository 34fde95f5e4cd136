#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real Kubernetes of one node for tests: etcd, API server, controllers, scheduler, kube-proxy, CoreDNS
# and a kubelet over containerd and runc, in a network namespace of their own, so that nothing here can
# reach or disturb another network. One at a time on a machine. Needs root.
#
#   cluster.sh build              compile the programs that go.mod pins, once: needs Go and the network,
#                                 and takes some ten minutes on two processors
#   cluster.sh build-kwok         the same for kwok, which plays nodes: two minutes
#   cluster.sh up                 start; over when the node is ready
#   cluster.sh kubectl|helm ARG...   run one of them on it; helm also without a cluster, to lint, say
#   cluster.sh exec CMD...        run something in its network: pods and services are reached from there
#   cluster.sh load IMAGE.tar     give the node an image; use it with imagePullPolicy IfNotPresent or Never
#   cluster.sh kill|start NAME    one of the programs, such as apiserver: ended as by a crash, and back.
#                                 Two `up` leaves out: gpus gives the node eight nvidia.com/gpu, and
#                                 kwok plays nodes that are annotated kwok.x-k8s.io/node=fake
#   cluster.sh logs               the end of each program's log
#   cluster.sh down               stop everything and leave nothing
#
# NT_CLUSTER: state folder (/run/neutracer-cluster). NT_CLUSTER_BIN: where the programs are kept
# (~/.cache/neutracer-cluster/HASH, by what go.mod and go.sum say).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
state=${NT_CLUSTER:-/run/neutracer-cluster}
hash=$(cat "$here"/go.mod "$here"/go.sum "$here"/{dns,gpu}/*.go | sha256sum | cut -c1-12)
bin=${NT_CLUSTER_BIN:-$HOME/.cache/neutracer-cluster/$hash}
kwok=${bin%/*}/kwok-$(cat "$here"/kwok/go.{mod,sum} | sha256sum | cut -c1-12)/kwok
names=ntcluster
node_ip=10.99.0.1 # on a bridge that exists only inside the namespace
pod_cidr=10.88.0.0/24
service_cidr=10.96.0.0/24
version=$(sed -n 's/^\tk8s.io\/kubernetes v/v/p' "$here/go.mod")
socket=$state/containerd.sock
# Not into the caches of whoever runs this.
export KUBECONFIG=$state/kubeconfig KUBECACHEDIR=$state/cache
export HELM_CACHE_HOME=$state/helm/cache HELM_CONFIG_HOME=$state/helm/config HELM_DATA_HOME=$state/helm/data
# The order in which they start; they stop the other way round.
programs=(containerd etcd apiserver controllers scheduler proxy dns kubelet gpus kwok)
# Where these programs leave things whatever they are told: removed if they were not there before.
strays=(/run/containerd /run/netns /var/lib/cni /var/lib/kubelet /var/log/containers)
# What a kubelet sets on its machine.
sysctls=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes)

die() {
  echo "cluster.sh: $*" >&2
  exit 1
}

alive() { [[ $(ps -o stat= -p "$1") == [^Z]* ]]; } # and not a zombie

# Not `ip netns exec`, which would hide the cgroups below /sys.
inside() {
  [ -e "/run/netns/$names" ] || die "there is no cluster: run '$0 up' first"
  nsenter --net="/run/netns/$names" "$@"
}

need_go() {
  local found need
  need=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "$here/go.mod")
  found=$(command -v go >/dev/null && cd "$here" && go env GOVERSION 2>/dev/null | sed 's/^go//') || found=
  printf '%s\n' "$need" "${found:-0}" | sort -C -V ||
    die "Go $need or later is needed to build Kubernetes and Helm, here is ${found:-none}: see https://go.dev/dl"
}

build() {
  local k=k8s.io/kubernetes/cmd minor flags
  [ ! -x "$bin/kubelet" ] || return 0
  need_go
  mkdir -p "${bin%/*}"
  exec 9>"$bin.lock"
  flock 9
  [ ! -x "$bin/kubelet" ] || return 0
  echo "building Kubernetes $version and Helm, once: this takes some minutes" >&2
  # Helm takes the version that it renders for, where no cluster says it, from its build.
  minor=${version#v1.} minor=${minor%%.*}
  flags="-X k8s.io/component-base/version.gitVersion=$version
    -X helm.sh/helm/v3/internal/version.version=$(sed -n 's/^\thelm.sh\/helm\/v3 //p' "$here/go.mod")
    -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor
    -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=$minor"
  # They are not debugged here: without DWARF they compile faster.
  (cd "$here" && go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w ${flags//$'\n'/ }" -o "$bin.part/" $k/kube-apiserver $k/kube-controller-manager \
    $k/kube-scheduler $k/kube-proxy $k/kubelet $k/kubectl helm.sh/helm/v3/cmd/helm ./dns ./gpu) || die "the build failed"
  mv "$bin.part" "$bin"
}

build_kwok() {
  local to=${kwok%/kwok}
  [ ! -x "$kwok" ] || return 0
  need_go
  mkdir -p "${to%/*}"
  exec 9>"$to.lock"
  flock 9
  [ ! -x "$kwok" ] || return 0
  echo "building kwok, once: this takes two minutes" >&2
  (cd "$here/kwok" && go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$to.part/" sigs.k8s.io/kwok/cmd/kwok) || die "the build failed"
  mv "$to.part" "$to"
}

# launch NAME CMD...: in the background, inside the namespace, with its log and process id kept.
launch() {
  local name=$1
  shift
  nsenter --net="/run/netns/$names" "$@" >>"$state/log/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$state/pid/$name"
}

start() {
  local ca=$state/certs/apiserver.crt
  case $1 in
    containerd) launch containerd containerd -c "$state/containerd.toml" ;;
    etcd)
      launch etcd etcd --data-dir "$state/etcd" --unsafe-no-fsync \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster default=http://127.0.0.1:2380
      ;;
    apiserver)
      # MutatingAdmissionPolicy is off by default before Kubernetes 1.36.
      launch apiserver "$bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
        --advertise-address=$node_ip --bind-address=0.0.0.0 --secure-port=6443 --cert-dir="$state/certs" \
        --service-cluster-ip-range=$service_cidr --token-auth-file="$state/tokens" \
        --authorization-mode=Node,RBAC --allow-privileged=true --feature-gates=MutatingAdmissionPolicy=true \
        --runtime-config=admissionregistration.k8s.io/v1beta1=true,admissionregistration.k8s.io/v1alpha1=true \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$state/sa.key" --service-account-signing-key-file="$state/sa.key" \
        --kubelet-preferred-address-types=InternalIP \
        --kubelet-client-certificate="$state/kubelet-client.crt" --kubelet-client-key="$state/kubelet-client.key"
      ;;
    controllers)
      launch controllers "$bin/kube-controller-manager" --kubeconfig="$KUBECONFIG" \
        --service-account-private-key-file="$state/sa.key" --use-service-account-credentials \
        --root-ca-file="$ca" --leader-elect=false
      ;;
    scheduler) launch scheduler "$bin/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false ;;
    proxy)
      launch proxy "$bin/kube-proxy" --kubeconfig="$KUBECONFIG" --proxy-mode=nftables \
        --hostname-override=node-1 --cluster-cidr=$pod_cidr --conntrack-max-per-core=0 \
        --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
      ;;
    dns) launch dns "$bin/dns" -conf "$state/Corefile" ;;
    kubelet)
      launch kubelet "$bin/kubelet" --config "$state/kubelet.yaml" --kubeconfig "$KUBECONFIG" \
        --root-dir "$state/kubelet" --hostname-override node-1 --node-ip $node_ip
      ;;
    gpus) launch gpus "$bin/gpu" ;;
    kwok)
      [ -x "$kwok" ] || die "there is no $kwok: run '$0 build-kwok' first"
      launch kwok "$kwok" --kubeconfig "$KUBECONFIG" --config "$here/kwok/stages.yaml" --manage-all-nodes=false \
        --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --node-lease-duration-seconds=0 -v ERROR
      ;;
    *) die "there is no program '$1', there are: ${programs[*]}" ;;
  esac
}

cut_off() {
  local pid
  [ -f "$state/pid/${1:?NAME}" ] || die "'$1' was not started"
  pid=$(cat "$state/pid/$1")
  kill -9 "$pid" 2>/dev/null || :
  while alive "$pid"; do sleep 0.1; done
}

# wait_for SECONDS WHAT CMD...
wait_for() {
  local left=$(($1 * 5)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((left-- > 0)) || die "$what did not come up"
    sleep 0.2
  done
}

# The container that holds a pod's namespaces: a busybox, asleep.
pause_image() {
  local root=$state/pause id
  mkdir -p "$root/rootfs/bin"
  cp "$(command -v busybox)" "$root/rootfs/bin/sleep"
  tar -C "$root/rootfs" -cf "$root/layer.tar" .
  id=$(sha256sum "$root/layer.tar" | cut -d' ' -f1)
  cat >"$root/config.json" <<END
{"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sleep", "2147483647"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$id"]}}
END
  echo '[{"Config": "config.json", "RepoTags": ["neutracer.test/pause:1"], "Layers": ["layer.tar"]}]' >"$root/manifest.json"
  tar -C "$root" -cf "$state/pause.tar" config.json manifest.json layer.tar
}

config_files() {
  local token
  openssl genrsa -out "$state/sa.key" 2048 2>/dev/null
  # What the API server shows to the kubelet, for logs, exec and port-forward.
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=test-ca -keyout "$state/ca.key" \
    -out "$state/ca.crt" 2>/dev/null
  openssl req -newkey rsa:2048 -nodes -subj /O=system:masters/CN=apiserver \
    -keyout "$state/kubelet-client.key" 2>/dev/null |
    openssl x509 -req -days 30 -CA "$state/ca.crt" -CAkey "$state/ca.key" -CAcreateserial \
      -out "$state/kubelet-client.crt" 2>/dev/null
  token=$(openssl rand -hex 16)
  echo "$token,admin,1,system:masters" >"$state/tokens"
  cat >"$KUBECONFIG" <<END
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: 'https://$node_ip:6443', certificate-authority: $state/certs/apiserver.crt}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
END
  chmod 600 "$state/tokens" "$KUBECONFIG"
  # Without CAP_SYS_RESOURCE a container cannot ask for a better OOM score than its parent has.
  cat >"$state/containerd.toml" <<END
version = 2
root = "$state/containerd"
state = "$state/containerd-run"
[grpc]
  address = "$socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "neutracer.test/pause:1"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni"
END
  mkdir -p "$state/cni"
  cat >"$state/cni/10-test.conflist" <<END
{"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "ptp", "ipMasq": false,
 "ipam": {"type": "host-local", "dataDir": "$state/ipam", "subnet": "$pod_cidr", "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
  cat >"$state/Corefile" <<END
.:53 {
    bind $node_ip
    errors
    ready 127.0.0.1:8181
    cache 5
    kubernetes cluster.local {
        kubeconfig $KUBECONFIG
    }
}
END
  cat >"$state/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$socket
podLogsDir: $state/log/pods
address: $node_ip
clusterDNS: [$node_ip]
clusterDomain: cluster.local
resolvConf: ""
syncFrequency: 10s # so that changed secrets do not take a minute to be there
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/ca.crt}}
authorization: {mode: Webhook}
evictionHard: {imagefs.available: "1%", nodefs.available: "1%", memory.available: 100Mi}
enforceNodeAllocatable: []
END
}

network() {
  ip netns add $names
  inside ip link set lo up
  inside ip link add br0 type bridge
  inside ip addr add $node_ip/24 dev br0
  inside ip link set br0 up
  inside ip route add default via $node_ip # leads nowhere: who asks for a default route finds one
  inside sysctl -qw net.ipv4.ip_forward=1
}

logs() {
  local file
  for file in "$state"/log/*.log; do
    [ ! -s "$file" ] || { echo "== ${file##*/}" && tail -n 8 "$file"; }
  done
}

missing() { # prints what is not installed
  local it
  for it in etcd containerd ctr runc nft conntrack openssl curl busybox ip nsenter /usr/lib/cni/ptp; do
    command -v "$it" >/dev/null || printf ' %s' "$it"
  done
}

# shellcheck disable=SC2317 # by a trap
given_up() {
  local status=$?
  trap - EXIT
  logs >&2
  down
  exit "$status"
}

up() {
  local lacks name
  lacks=$(missing)
  [ -z "$lacks" ] || die "not installed:$lacks ('tests/deps.sh cluster' does that)"
  [ -x "$bin/kubelet" ] || die "there are no programs in $bin: run '$0 build' first"
  [ ! -e "$state" ] || die "$state is in use: run '$0 down' first"
  [ ! -e "/run/netns/$names" ] || die "there is a cluster already, in another folder than $state"
  [ ! -S /var/lib/kubelet/device-plugins/kubelet.sock ] || die "this machine is a node of some cluster: not here"
  mkdir -p "$state"/{log/pods,pid,certs}
  trap given_up EXIT
  trap 'exit 130' INT TERM HUP
  for name in "${sysctls[@]}"; do sysctl -e "$name"; done >"$state/sysctls"
  for name in "${strays[@]}"; do [ -e "$name" ] || echo "$name"; done >"$state/strays"
  network
  config_files
  pause_image

  start containerd
  start etcd
  start apiserver
  wait_for 60 containerd ctr -a "$socket" version
  ctr -a "$socket" -n k8s.io image import "$state/pause.tar" >/dev/null
  wait_for 120 "the API server" inside "$bin/kubectl" get --raw /readyz
  for name in controllers scheduler proxy dns kubelet; do start "$name"; done
  wait_for 120 "the node" inside "$bin/kubectl" wait --for=condition=Ready node/node-1 --timeout=1s
  wait_for 60 DNS inside curl -fs http://127.0.0.1:8181/ready
  wait_for 60 "the service account" inside "$bin/kubectl" get serviceaccount default
  trap - EXIT
  echo "Kubernetes $version is up: $0 kubectl get nodes"
}

down() {
  local name pid file
  [ -e "$state" ] || return 0
  for ((i = ${#programs[@]} - 1; i > 0; i--)); do # nothing of these is worth a farewell
    name=${programs[i]}
    [ ! -f "$state/pid/$name" ] || kill -9 "$(cat "$state/pid/$name")" 2>/dev/null || :
  done
  if ctr -a "$socket" version >/dev/null 2>&1; then
    ctr -a "$socket" -n k8s.io tasks ls -q | xargs -r -n1 ctr -a "$socket" -n k8s.io tasks kill -s KILL || :
    sleep 0.5
    ctr -a "$socket" -n k8s.io containers ls -q |
      xargs -r -n1 ctr -a "$socket" -n k8s.io tasks delete -f >/dev/null 2>&1 || :
  fi
  # The shims of this containerd, known by the socket that they were given.
  for pid in $(pgrep -f "containerd-shim-runc-v2 .*-address $socket" || :); do kill "$pid" 2>/dev/null || :; done
  [ ! -f "$state/pid/containerd" ] || kill "$(cat "$state/pid/containerd")" 2>/dev/null || :
  for file in "$state"/pid/*; do
    [ -f "$file" ] || continue
    for _ in {1..50}; do
      alive "$(cat "$file")" || continue 2
      sleep 0.1
    done
    kill -9 "$(cat "$file")" 2>/dev/null || :
  done
  awk -v s="$state/" 'index($2, s) == 1 { print $2 }' /proc/self/mounts | sort -r | xargs -r -n1 umount -l || :
  ip netns del $names 2>/dev/null || :
  find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || :
  rm -f /var/lib/kubelet/device-plugins/{kubelet,standin}.sock
  while read -r name; do
    [ "$name" != /run/netns ] || umount /run/netns 2>/dev/null || :
    rm -rf "$name"
  done <"$state/strays"
  sysctl -q -p "$state/sysctls" >/dev/null 2>&1 || :
  rm -rf "$state"
}

case ${1:-} in
  build) build ;;
  build-kwok) build_kwok ;;
  up | down | kill | start | kubectl | exec | load) [ "$(id -u)" -eq 0 ] || die "needs root" ;;&
  up | down | logs) "$1" ;;
  start)
    start "${2:?NAME}"
    ;;
  kill) cut_off "${2:-}" ;;
  kubectl)
    shift
    inside "$bin/kubectl" "$@"
    ;;
  helm)
    shift
    build
    if [ -e "/run/netns/$names" ]; then inside "$bin/helm" "$@"; else "$bin/helm" "$@"; fi
    ;;
  exec)
    shift
    inside "$@"
    ;;
  load) ctr -a "$socket" -n k8s.io image import "${2:?IMAGE.tar}" ;;
  *)
    sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 64
    ;;
esac
