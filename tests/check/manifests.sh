#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make manifests` writes is up to date: the chart's schema and README, and with helm deploy/k8s.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=${NT_BIN:-build/release/bin}
chart=deploy/helm/neutracer
version=$(sed -n 's/^#define NT_VERSION "\(.*\)"$/\1/p' common/base/version.h)

python3 -c 'import yaml' 2>/dev/null || {
  echo "skip: python3-yaml is not installed"
  exit 77
}
python3 deploy/helm/derive.py "$chart" "$bin" --check || bad=1
for key in version appVersion; do
  [ "$(sed -n "s/^$key: //p" $chart/Chart.yaml)" = "$version" ] ||
    report "$chart/Chart.yaml: $key is not that of common/base/version.h, $version"
done

# What alerts ask for is there.
tests/metrics.sh >"$work/metrics"
while IFS= read -r metric; do
  grep -q "^$metric"$'\t' "$work/metrics" || report "$chart/templates/monitoring.yaml: there is no metric $metric"
done < <(grep -oE 'neutracer_[a-z_]+' $chart/templates/monitoring.yaml | sort -u)
[ "$bad" -eq 0 ] || exit 1

helm=$(tests/chart/helm.sh 2>"$work/why") || {
  cat "$work/why"
  exit 77
}
HELM=$helm deploy/helm/render.sh >"$work/neutracer.yaml"
diff -u --label 'deploy/k8s/neutracer.yaml' --label 'helm template' deploy/k8s/neutracer.yaml "$work/neutracer.yaml" || {
  echo "deploy/k8s is not what the chart renders: run 'make manifests'"
  exit 1
}
