#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent with ranks that use RDMA, on a stock kernel: tests/vm/rdma_ranks.sh over soft-RoCE, which this
# machine's kernel may lack. Its spool goes to a real Kafka, where another client prints the records of each post.
# KERNEL: the series (6.1).
set -euo pipefail

kernel=${KERNEL:-6.1}

if ! command -v rdma >/dev/null || ! command -v mpirun >/dev/null || [ ! -x build/sim/mpi_verbs ]; then
  echo "skip: vm: iproute2, Open MPI or the simulated jobs are not there"
  exit 77
fi
if ! command -v qemu-system-x86_64 >/dev/null && [ "$(id -u)" -ne 0 ]; then
  echo "skip: vm: there is no QEMU, and only root can install it"
  exit 77
fi
if ! tests/vm/vm.sh -p -k "$kernel" >/dev/null; then
  echo "skip: vm: the kernel $kernel cannot be had here"
  exit 77
fi
for program in java kcat protoc; do
  command -v $program >/dev/null || { echo "skip: kafka: no $program: 'make deps' installs it"; exit 77; }
done
work=$(mktemp -d /tmp/neutracer-XXXXXX)
trap 'NT_KAFKA=$work/kafka tests/kafka/kafka.sh down >/dev/null 2>&1 || :; rm -rf "$work"' EXIT
mkdir "$work/out"
tests/vm/vm.sh -k "$kernel" -m 1536 -t 2400 -M rdma_rxe -w "$work/out" -- sh -c "
  ip link set lo up
  rdma link add rxe0 type rxe netdev lo || exit 1
  tests/vm/rdma_ranks.sh '$work/out'"

# shellcheck source=tests/kafka/ports.sh
. tests/kafka/ports.sh
claim_ports
export NT_KAFKA=$work/kafka
servers=$(tests/kafka/kafka.sh up)
build/release/bin/neutracer topics create --bus "kafka://$servers" --partitions 3 >"$work/topics.log"
copied=$(build/release/test-kafka/copy "spool:$work/out/spool" "kafka://$servers")
kcat -b "$servers" -C -q -e -t neutracer.detail.v1 -f '%R%s' >"$work/detail"
echo "$copied records, $(stat -c %s "$work/detail") bytes"
tests/e2e/detail.py 2 ibv_post_send job= namespace=train pod=llm-0 pod_uid=12345678-90ab-cdef-1234-567890abcdef \
  container= node=node-a <"$work/detail"
