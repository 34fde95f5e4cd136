#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the metrics of the programs, one per line: name, kind, help, separated by tabs. They are
# read from the preprocessed sources, with macros expanded and strings joined.
#
#   tests/metrics.sh              the list
#   tests/metrics.sh --markdown   the table of docs/operations.md
#   tests/metrics.sh --write      updates that table in docs/operations.md, between its marks
set -euo pipefail

text='("[^"]*"[[:space:]]*)+'
list() {
  while IFS= read -r file; do
    gcc -E -P -D_GNU_SOURCE -I. -Ibuild/gen "$file" | tr '\n' ' ' |
      { grep -oE "$text,[[:space:]]*(\.kind = )?NT_METRIC_[A-Z_]+,[[:space:]]*(\.help = )?\(?$text" || :; }
  done < <(tests/files.sh '^(agent|aggregator|cli)/.*\.c$' | xargs -r grep -l NT_METRIC_) |
    sed -E 's/\.(kind|help) = \(?//g; s/"[[:space:]]*"//g
      s/"([^"]*)"[[:space:]]*,[[:space:]]*NT_METRIC_([A-Z_]+),[[:space:]]*\(?"([^"]*)"[[:space:]]*/\1\t\2\t\3/' |
    LC_ALL=C sort -u
}

markdown() {
  echo '| metric | kind | meaning |'
  echo '|---|---|---|'
  list | awk -F'\t' '{
    kind = $2 ~ /^COUNTER/ ? "counter" : "gauge"
    if ($2 ~ /_NS$/) kind = kind ", seconds"
    print "| `" $1 "` | " kind " | " $3 " |"
  }'
}

case ${1:-} in
  '') list ;;
  --markdown) markdown ;;
  --write)
    table=$(mktemp) page=$(mktemp)
    trap 'rm -f "$table" "$page"' EXIT
    markdown >"$table"
    awk -v table="$table" '
      /^<!-- metrics: / { print; while ((getline line < table) > 0) print line; skip = 1; next }
      /^<!-- end of metrics -->$/ { skip = 0 }
      !skip
    ' docs/operations.md >"$page"
    cat "$page" >docs/operations.md
    ;;
  *)
    echo "tests/metrics.sh: unknown option '$1'" >&2
    exit 2
    ;;
esac
