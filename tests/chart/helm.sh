#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints where helm is: NT_HELM, else one that is installed, else the one of the test cluster. Exit
# status 77, with the reason, where there is none.
set -euo pipefail

for helm in "${NT_HELM:-}" "$(command -v helm || :)" "${NT_CLUSTER_BIN:-/nowhere}/helm" \
  $(ls -td "$HOME"/.cache/neutracer-cluster/*/helm 2>/dev/null); do
  if [ -x "$helm" ]; then
    echo "$helm"
    exit 0
  fi
done
echo 'skip: cluster: helm is not installed; tests/cluster/cluster.sh build makes it' >&2
exit 77
