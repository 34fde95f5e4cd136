#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent with ranks that use RDMA, on a stock kernel: tests/vm/rdma_ranks.sh over soft-RoCE, which this
# machine's kernel may lack. KERNEL: the series (6.1).
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
exec tests/vm/vm.sh -k "$kernel" -m 1536 -t 2400 -M rdma_rxe -- sh -c "
  ip link set lo up
  rdma link add rxe0 type rxe netdev lo || exit 1
  tests/vm/rdma_ranks.sh"
