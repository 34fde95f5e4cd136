#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the chart renders for each set of values, and what it refuses.
set -euo pipefail

python3 -c 'import yaml' 2>/dev/null || {
  echo 'skip: cluster: python3-yaml is not installed'
  exit 77
}
helm=$(tests/chart/helm.sh 2>&1) || {
  echo "$helm"
  exit 77
}
exec python3 tests/chart/chart.py "$helm" "${NT_BIN:-build/release/bin}"
