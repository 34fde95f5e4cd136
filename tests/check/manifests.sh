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

# Rules and dashboards read metrics that there are, or what a rule records.
tests/metrics.sh >"$work/metrics"
sed -nE 's/^ *- record: (.*)$/\1/p' $chart/monitoring/rules.yaml >"$work/records"
while IFS=: read -r file name; do
  case $name in
    *:*) grep -qxF -- "$name" "$work/records" || report "$file: no rule records $name" ;;
    *) grep -q "^$name"$'\t' "$work/metrics" || report "$file: there is no metric $name" ;;
  esac
done < <(grep -roE '([a-z_]+:)?\bneutracer_[a-z_]+(:[a-z0-9]+)?' $chart/monitoring | sort -u)

# The manual says what to do about each alert, where the alert says.
while IFS= read -r alert; do
  grep -rqF "runbook: docs/metrics.md#${alert,,}" $chart/monitoring || report "$alert names no place of its runbook"
  grep -qx "### $alert" docs/metrics.md || report "docs/metrics.md does not say what to do about $alert"
done < <(sed -nE 's/^ *- alert: (.*)$/\1/p' $chart/monitoring/*.yaml)
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
