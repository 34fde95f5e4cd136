#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A planted function is named with its line, while it sleeps, while it computes, while a collection runs
# and while another thread holds the GIL: on the interpreters of this machine, and on those of other
# Debian suites, which run in other root directories.
set -euo pipefail

if [ "$(id -u)" -ne 0 ]; then
  echo "skip: root: other root directories need it"
  exit 77
fi
program=build/release/test/agent/stack/test_agent_stack_live
[ -x "$program" ] || {
  echo "$program is not built"
  exit 1
}
NT_PYTHONS=$(tests/stack/pythons.sh)
export NT_PYTHONS
if [ -z "$NT_PYTHONS" ]; then
  echo "skip: pythons: no interpreter of another Debian suite can be had here"
  exit 77
fi
echo "interpreters: $NT_PYTHONS"
CMOCKA_MESSAGE_OUTPUT=TAP exec "$program"
