#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The store on a disk that is full, and then is not.
set -euo pipefail

if [ "$(id -u)" -ne 0 ] || ! unshare --mount true 2>/dev/null; then
  echo "skip: root: needs a mount namespace"
  exit 77
fi
exec unshare --mount tests/api/full_disk.py
