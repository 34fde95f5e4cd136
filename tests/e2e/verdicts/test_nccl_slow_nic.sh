#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Hosts that never wait for their GPU, one on each of four nodes, and one network card that is slow. Collectives
# alone show that the network is: what NCCL's proxies sent shows whose card it is, also where NCCL reports no
# kernels, and beside CUPTI's library.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

export NCCL_PROFILER_PLUGIN=$PWD/build/plugin/libnccl-profiler-neutracer.so SIM_NCCL_PROXY=1

setup
start_aggregator --resolve-after 10s
groups=()
for node in a b c d; do
  make_cgroup "$node"
  groups+=(--cgroup "$cgroup")
  start_agent "node-$node" --cgroup "$cgroup"
done

names_card() { # names_card NODE
  has_incident '.class == "network" and .state == "firing" and
    ([.culprits[] | select(.kind == "nic" and .node == "'"$1"'")] | length) == 1'
}

for version in 2.30 2.32 2.32-cupti; do
  export SIM_NCCL_VERSION=${version%-cupti}
  [ "$version" = "$SIM_NCCL_VERSION" ] ||
    export CUDA_INJECTION64_PATH=$PWD/build/plugin/libneutracer-cupti.so LD_LIBRARY_PATH=$PWD/build/sim/lib
  start_job train 4 --check none --gradient-mb 256 -- "${groups[@]}"
  seen 4
  quiet 30
  rank=$(draw 4)
  node=node-$(cut -c $((rank + 1)) <<<abcd)
  fault "nic $rank 3"
  wait_until 60 "a verdict on $node's card with NCCL $version" names_card "$node" ||
    fail "NCCL $version, $node: $(incidents); $(grep gpu_transfers "$work"/agent-*.prom)"
  has_incident '.class == "network" and ([.evidence[] | select(.method == "delay matrix")] | length) > 0' ||
    fail "not by what was sent: $(incidents)"
  [ "$(incidents | jq '[.[] | .culprits[] | select(.kind == "rank" or .kind == "node")] | length')" -eq 0 ] ||
    fail "somebody is accused: $(incidents)"
  echo "NCCL $version: $(open_incidents | jq -r '.[0].summary')"
  heal
  end_job || fail "the job failed"
done
