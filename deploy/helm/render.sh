#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints deploy/k8s/neutracer.yaml: the chart with deploy/helm/plain.yaml. HELM: the program to use.
set -euo pipefail
cd "$(dirname "$0")"

echo '# SPDX-License-Identifier: GPL-3.0-or-later'
# shellcheck disable=SC2016 # quotes of the text
echo '# Made by `make manifests` from the chart in deploy/helm/neutracer; docs/kubernetes.md tells how to use it.'
"${HELM:-helm}" template neutracer neutracer --namespace neutracer --values plain.yaml \
  --kube-version 1.30.0 --skip-tests
