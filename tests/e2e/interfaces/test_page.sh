#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The page of `neutracer analyze --html` in a real browser: what it shows, in light and dark, with and
# without script, to pointer, keys and screen reader; that names from outside are only text; that it
# asks no network for anything. NT_KEEP=1 leaves the pages and their pictures.
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

"${bin%/bin}/test/pages" "$work"
tests/page/check.py "$work"
