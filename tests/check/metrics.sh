#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The metrics of the programs and docs/operations.md name the same things, and name them well.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

code=$(mktemp) docs=$(mktemp)
trap 'rm -f "$code" "$docs"' EXIT
name='neutracer_[a-z0-9_]+'

# Rows of the tables: {"neutracer_x_total", NT_METRIC_COUNTER, "Help." as the compiler sees them, that
# is with macros expanded and strings joined.
text='("[^"]*"[[:space:]]*)+'
while IFS= read -r file; do
  gcc -E -P -D_GNU_SOURCE -I. -Ibuild/gen "$file" | tr '\n' ' ' |
    { grep -oE "$text,[[:space:]]*NT_METRIC_[A-Z_]+,[[:space:]]*$text" || :; }
done < <(tests/files.sh '^(agent|aggregator|cli)/.*\.c$' | xargs -r grep -l NT_METRIC_) |
  sed -E 's/"[[:space:]]*"//g; s/"([^"]*)"[[:space:]]*,[[:space:]]*NT_METRIC_([A-Z_]+),[[:space:]]*"([^"]*)"[[:space:]]*/\1\t\2\t\3/' |
  sort -u >"$code" || :
[ -s "$code" ] || {
  echo "no metric found in the sources"
  exit 1
}
while IFS=$'\t' read -r metric kind help; do
  case $kind:$metric in
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
done <"$code"
twice=$(cut -f1,2 "$code" | sort -u | cut -f1 | uniq -d)
[ -z "$twice" ] || report "of two kinds: $twice"

[ -f docs/operations.md ] || {
  report "docs/operations.md is missing: it lists the metrics"
  exit 1
}
grep -oE "\`$name(\{[^}]*\})?\`" docs/operations.md | grep -oE "$name" | sort -u >"$docs" || :
while IFS= read -r metric; do
  report "$metric is not in docs/operations.md"
done < <(cut -f1 "$code" | sort -u | comm -23 - "$docs")
while IFS= read -r metric; do
  report "$metric is in docs/operations.md, but no program has it"
done < <(cut -f1 "$code" | sort -u | comm -13 - "$docs")
exit $bad
