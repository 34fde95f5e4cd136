#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The tests of the kernel side, on a stock Debian kernel in a virtual machine: one boot, all programs.
# KERNEL is the series, 6.1 where it is not set.
set -euo pipefail

programs=(build/release/test-bpf/test_*)
[ -x "${programs[0]}" ] || {
  echo "no program in build/release/test-bpf"
  exit 1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
# Each program prints its own TAP plan; tests/run.sh adds them up.
# shellcheck disable=SC2016 # the guest expands it
tests/vm/vm.sh -k "${KERNEL:-6.1}" -m 1024 -t 600 -- bash -c '
  export CMOCKA_MESSAGE_OUTPUT=TAP
  echo "# $(uname -r)"
  status=0
  for program; do
    echo "# $program"
    "$program" || {
      code=$?
      [ $code -eq 77 ] || status=1
    }
  done
  exit $status
' bash "${programs[@]}" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
# No guest is a reason to skip; a guest that dies under the tests is not.
if [ "$status" -eq 125 ] && ! grep -q '^# [0-9]' "$log"; then
  echo "skip: vm: the virtual machine does not start here"
  exit 77
fi
exit "$status"
