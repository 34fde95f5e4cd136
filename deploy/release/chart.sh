#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Packages the chart with one version for itself and the programs. Helm writes the time of packaging into
# the archive; it is packed again, so that the same chart gives the same bytes.
#
#   chart.sh HELM VERSION OUT.tgz
#
# SOURCE_DATE_EPOCH is the time of all files (the last commit's, else 0).
set -euo pipefail

helm=${1:?HELM} version=${2:?VERSION} out=${3:?OUT}
work=$(mktemp -d)
trap 'rm -rf "$work" "$out.new"' EXIT
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
"$helm" package deploy/helm/neutracer --version "$version" --app-version "$version" --destination "$work" >"$work/log" || {
  cat "$work/log" >&2
  exit 1
}
mkdir -p "$work/chart" "$(dirname "$out")"
tar -xmzf "$work/neutracer-$version.tgz" -C "$work/chart"
tar -c --format=gnu --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w \
  -C "$work/chart" neutracer | gzip -n >"$out.new"
"$helm" lint --strict --quiet "$work/chart/neutracer" >"$work/log" || {
  cat "$work/log" >&2
  exit 1
}
mv "$out.new" "$out"
