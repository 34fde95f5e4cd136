#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What each earlier version left is read by this one: incidents, messages that wait, a spool, a disk queue
# and config files. A store of a later schema is refused and left alone. (tests/upgrade/upgrade.py)
set -euo pipefail

count=0
for kept in tests/golden/upgrade/*/; do
  tests/upgrade/upgrade.py check "$kept"
  count=$((count + 1))
done
[ "$count" -gt 0 ] || {
  echo "no data of an earlier version"
  exit 1
}
