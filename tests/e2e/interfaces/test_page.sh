#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The page of `neutracer analyze --html` in a real browser: what it shows, in light and dark, with and
# without script, to pointer, keys and screen reader; that names from outside are only text; that it
# asks no network for anything. The same of the aggregator's page, over an invented snapshot. NT_KEEP=1
# leaves the pages and their pictures.
set -euo pipefail

bin=${NT_BIN:-build/release/bin}
work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
trap '[ -n "${NT_KEEP:-}" ] && echo "# the pages are in $work" || rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

trace=tests/data/straggler/trace-AR.csv.gz
"$bin/neutracer" analyze --html "$work/ar.html" "$trace" >"$work/report"
grep '^    to do: ' "$work/report" >/dev/null || fail "the report does not say what to do"

# The same input gives the same page, also in the place of another, and beside a document.
cp "$work/ar.html" "$work/first"
"$bin/neutracer" analyze --json --html "$work/ar.html" "$trace" >"$work/document"
jq -e '.incidents | length == 1' "$work/document" >/dev/null || fail "--json beside --html is no document"
cmp "$work/first" "$work/ar.html" || fail "two pages of one trace differ"

status=0
"$bin/neutracer" analyze --html "$work/none/x.html" "$trace" >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 9 ] || fail "a page that cannot be written ends with $status, want 9"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "a page that cannot be written says: $(cat "$work/err")"
if [ -w /dev/full ]; then
  status=0
  "$bin/neutracer" analyze --html /dev/full "$trace" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" -eq 9 ] || fail "a full disk ends with $status, want 9"
fi

# Scored series: two nodes, one with times, known metrics, and a gap. Times of the day are of 2025-11-21.
mkdir "$work/nodes"
cp tests/data/anomaly/smd-1-6.csv.gz "$work/nodes/gpu-01.csv.gz"
zcat tests/data/anomaly/asd-1.csv.gz | awk -F, -v OFS=, '
  NR == 1 { print "time,split,cpu_busy,tcp_retransmits,<i>odd</i>,memory_available_bytes"; next }
  NR > 1000 && NR <= 1100 { print 1763683200 + NR * 60, $1, "", "", "nan", ""; next }
  { print 1763683200 + NR * 60, $1, $3, $4, $5, $6 }' >"$work/nodes/gpu-02.csv"
"$bin/neutracer" analyze --from metrics-csv --html "$work/nodes.html" "$work/nodes" >"$work/report"
grep '^gpu-02: [1-9]' "$work/report" >/dev/null || fail "no alarm of gpu-02: $(cat "$work/report")"
cp "$work/nodes.html" "$work/first"
"$bin/neutracer" analyze --from metrics-csv --json --html "$work/nodes.html" "$work/nodes" >"$work/document"
jq -e '.nodes | length == 2' "$work/document" >/dev/null || fail "--json beside --html is no document of nodes"
cmp "$work/first" "$work/nodes.html" || fail "two pages of the same series differ"
status=0
"$bin/neutracer" analyze --from metrics-csv --html "$work/none/x.html" "$work/nodes" >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 9 ] || fail "a page of nodes that cannot be written ends with $status, want 9"

"${bin%/bin}/test/pages" "$work"
tests/page/check.py "$work"
NT_API_SERVER="${bin%/bin}/test/api-server" tests/page/live.py "$work"
