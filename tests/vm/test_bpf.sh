#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The tests of the kernel side on a stock kernel: 6.1 has perf links alone, 6.12 multi links. There,
# too, every row of the table must record exactly what it records here. KERNEL: the series (6.1).
# PART=short: without what hardly depends on the kernel.
set -euo pipefail

kernel=${KERNEL:-6.1}
programs=${NT_BPF_PROGRAMS:-build/release/test-bpf}
tests='test_rows test_calls test_process_counters test_shares test_discover'
tests+=' test_gpu_batch test_event_query test_capture test_rdma test_rdma_detail'
# Tracepoints that are passed all the time: patched while another virtual CPU of its own thread runs into them, the
# guest dies or stands still. One thread emulates all.
of_one_thread='test_host_events test_host_work test_host_handlers test_sockets'
# More than half of the time: places of probes, how the ring fills, what Python programs map, multiplications and
# their times, collections of Python, single calls, files of libraries.
[ "${PART:-}" = short ] || tests+=' test_attach test_ring test_python test_gemm test_gemm_time test_gc_probe test_detail test_discover_files'

# The stand-in libraries are compiled here, where that is fast. Tests without any would run.
export NT_STUBS=$PWD/build/stubs
mkdir -p "$NT_STUBS"
for test in $tests $of_one_thread; do
  [ -x "$programs/$test" ] || {
    echo "$programs/$test is not built"
    exit 1
  }
  grep -q 'stub_only()' "tests/bpf/$test.c" || continue
  NT_STUBS_ONLY=1 "$programs/$test" >/dev/null 2>&1 || :
done

if ! command -v qemu-system-x86_64 >/dev/null && [ "$(id -u)" -ne 0 ]; then
  echo "skip: vm: there is no QEMU, and only root can install it"
  exit 77
fi
if ! tests/vm/vm.sh -p -k "$kernel" >/dev/null; then
  echo "skip: vm: the kernel $kernel cannot be had here"
  exit 77
fi
# NT_LONG: all libraries by perf links, too.
# What the guest may write is mounted over 9p: a file system whose server is elsewhere.
mkdir -p build/vm-files
head -c 16777216 /dev/urandom >build/vm-files/data
run() { # run TEST...
  tests/vm/vm.sh -k "$kernel" -t 4200 -w build/vm-files -- sh -c "
  export NT_NETWORK_FILE='$PWD/build/vm-files/data'
  export NT_STUBS='$NT_STUBS' NT_LONG=1 CMOCKA_MESSAGE_OUTPUT=TAP
  rc=0
  for test in $*; do
    '$programs'/\$test || rc=1
  done
  exit \$rc"
}

status=0
# shellcheck disable=SC2086 # words
VM_ACCEL=tcg,thread=single run $of_one_thread || status=1
# shellcheck disable=SC2086
run $tests || status=1
exit $status
