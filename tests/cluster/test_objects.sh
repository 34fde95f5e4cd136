#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The API server of the test cluster takes every object of every set of the chart's values, word by word,
# and finds only the agent to break the pod security level "restricted".
set -euo pipefail

tests/cluster/cluster.sh kubectl get namespaces >/dev/null 2>&1 || {
  echo 'skip: cluster: no cluster is up'
  exit 77
}
helm=$(tests/chart/helm.sh 2>&1) || {
  echo "$helm"
  exit 77
}
exec python3 tests/chart/server.py "$helm" tests/cluster/cluster.sh kubectl
