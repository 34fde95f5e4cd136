#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# RDMA on a stock kernel: ibv_rc_pingpong over soft-RoCE, which this machine's kernel may lack. KERNEL:
# the series (6.1).
set -euo pipefail

kernel=${KERNEL:-6.1}
program=${NT_BPF_PROGRAMS:-build/release/test-bpf}/test_rdma_real

if ! command -v ibv_rc_pingpong >/dev/null || ! command -v rdma >/dev/null; then
  echo "skip: vm: ibverbs-utils or iproute2 is not installed"
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
exec tests/vm/vm.sh -k "$kernel" -t 2400 -M rdma_rxe -- sh -c "
  export CMOCKA_MESSAGE_OUTPUT=TAP
  rdma link add rxe0 type rxe netdev lo || exit 1
  '$program'"
