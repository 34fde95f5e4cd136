#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every metric that the agent puts into a node vector is a row of proto/node_metric.def, every row is
# sent by the agent, and docs/node-metrics.md lists exactly these.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests/node_metrics.sh >"$work/list"
[ -s "$work/list" ] || {
  echo "no metric found in proto/node_metric.def"
  exit 1
}
cut -f1 "$work/list" | LC_ALL=C sort >"$work/rows"
twice=$(uniq -d "$work/rows")
[ -z "$twice" ] || report "more than one row of proto/node_metric.def: $twice"

# ---- the agent -----------------------------------------------------------------------------------

# Strings of these files that look like names: metrics, and these others. The rates of single ports have
# names of their own (agent/node/port_rates.c).
cat >"$work/others" <<'END'
block
diskstats
loadavg
lo
meminfo
stat
vmstat
END
tests/files.sh '^agent/(node/(node[a-z_]*|rank_times)|agent_node|gpu/gpu_metrics)\.c$' | xargs cat |
  grep -v '^#' | grep -oE '"[a-z][a-z0-9_]*"' | tr -d '"' | LC_ALL=C sort -u |
  grep -vxFf "$work/others" >"$work/sent"
while IFS= read -r name; do
  report "$name is sent by the agent and is no row of proto/node_metric.def"
done < <(LC_ALL=C comm -13 "$work/rows" "$work/sent")
while IFS= read -r name; do
  report "$name is a row of proto/node_metric.def that the agent never sends"
done < <(LC_ALL=C comm -23 <(uniq "$work/rows") "$work/sent")

# ---- the docs ------------------------------------------------------------------------------------

while IFS=$'\t' read -r name _ _ _ about; do
  case $about in
    [A-Z]*.) ;;
    *) report "$name: the meaning is a sentence with a full stop: '$about'" ;;
  esac
done <"$work/list"

page=docs/node-metrics.md
tests/node_metrics.sh --markdown >"$work/want"
sed -n '/^<!-- node metrics: /,/^<!-- end of node metrics -->$/p' "$page" | sed '1d;$d' >"$work/have"
diff -u "$work/have" "$work/want" >"$work/diff" || {
  cat "$work/diff"
  report "the metrics in $page are not those of the program: run 'tests/node_metrics.sh --write'"
}
exit $bad
