#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# programs.sh PROGRAM... - run tests of the kernel side on a stock kernel. KERNEL: the series (6.1).
# VM_ACCEL: see vm.sh.
set -euo pipefail

kernel=${KERNEL:-6.1}
programs=${NT_BPF_PROGRAMS:-build/release/test-bpf}

# The stand-in libraries are compiled here, where that is fast. Tests without any would run.
export NT_STUBS=$PWD/build/stubs
mkdir -p "$NT_STUBS"
for test; do
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
# What the guest may write is mounted over 9p: a file system whose server is elsewhere.
files=build/vm-files/$1
mkdir -p "$files"
head -c 16777216 /dev/urandom >"$files/data"
# NT_LONG: all libraries by perf links, too.
exec tests/vm/vm.sh -k "$kernel" -t 4200 -w "$files" -- sh -c "
  export NT_NETWORK_FILE='$PWD/$files/data'
  export NT_STUBS='$NT_STUBS' NT_LONG=1 CMOCKA_MESSAGE_OUTPUT=TAP
  rc=0
  for test in $*; do
    '$programs'/\$test || rc=1
  done
  exit \$rc"
