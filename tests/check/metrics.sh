#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The metrics of the programs have good names, and docs/operations.md lists exactly these.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests/metrics.sh >"$work/list"
[ -s "$work/list" ] || {
  echo "no metric found in the sources"
  exit 1
}
while IFS=$'\t' read -r metric kind help; do
  grep -qE '^neutracer_[a-z0-9_]+$' <<<"$metric" || report "$metric is no name for a metric"
  case $kind:$metric in
    COUNTER:*_seconds_total) report "$metric counts seconds: its kind is COUNTER_NS" ;;
    COUNTER:*_total) ;;
    COUNTER_NS:*_seconds_total) ;;
    GAUGE:*_total | GAUGE_NS:*_total) report "$metric is a gauge: its name must not end in _total" ;;
    GAUGE_NS:*_seconds) ;;
    GAUGE:*) ;;
    *) report "$metric is $kind: counters end in _total, times in _seconds" ;;
  esac
  case $help in
    [A-Z0-9]*.) ;;
    *) report "$metric: the help is a sentence with a full stop: '$help'" ;;
  esac
done <"$work/list"
twice=$(cut -f1 "$work/list" | uniq -d)
[ -z "$twice" ] || report "with two kinds or two meanings: $twice"
rows=$(grep -rhoE 'NT_METRIC_[A-Z_]+,' --include='*.c' agent aggregator cli | wc -l)
[ "$rows" -gt 0 ] || report "no row of a metric in the sources"

tests/metrics.sh --markdown >"$work/want"
sed -n '/^<!-- metrics: /,/^<!-- end of metrics -->$/p' docs/operations.md | sed '1d;$d' >"$work/have"
diff -u "$work/have" "$work/want" >"$work/diff" || {
  cat "$work/diff"
  report "the metrics in docs/operations.md are not those of the programs: run 'make man'"
}
exit $bad
