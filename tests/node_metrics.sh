#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the metrics of a node vector, one per line: name, kind, unit, scored or shown, meaning,
# separated by tabs. The compiler reads them from proto/node_metric.def.
#
#   tests/node_metrics.sh              the list
#   tests/node_metrics.sh --markdown   the table of docs/node-metrics.md
#   tests/node_metrics.sh --write      updates that table, between its marks
set -euo pipefail

page=docs/node-metrics.md

list() {
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # now
  trap "rm -rf '$work'" RETURN
  cat >"$work/list.c" <<'C'
#include <stdio.h>

#define NT_NODE_METRIC(name, kind, unit, scored, about) {#name, #kind, unit, #scored, about},

int main(void)
{
	static const struct {
		const char *name, *kind, *unit, *scored, *about;
	} row[] = {
#include "proto/node_metric.def"
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		printf("%s\t%s\t%s\t%s\t%s\n", row[i].name, row[i].kind, *row[i].unit ? row[i].unit : "-",
		       row[i].scored, row[i].about);
	return 0;
}
C
  "${CC:-gcc}" -std=gnu17 -I. -o "$work/list" "$work/list.c"
  "$work/list" | awk -F'\t' -v OFS='\t' '{ $2 = tolower($2); $4 = tolower($4); print }'
}

markdown() {
  echo '| metric | kind | unit | score | meaning |'
  echo '|---|---|---|---|---|'
  list | awk -F'\t' '{ print "| `" $1 "` | " $2 " | " ($3 == "-" ? "–" : $3) " | " ($4 == "scored" ? "yes" : "–") " | " $5 " |" }'
}

case ${1:-} in
  '') list ;;
  --markdown) markdown ;;
  --write)
    table=$(mktemp) new=$(mktemp)
    trap 'rm -f "$table" "$new"' EXIT
    markdown >"$table"
    awk -v table="$table" '
      /^<!-- node metrics: / { print; while ((getline line < table) > 0) print line; skip = 1; next }
      /^<!-- end of node metrics -->$/ { skip = 0 }
      !skip
    ' "$page" >"$new"
    cat "$new" >"$page"
    ;;
  *)
    echo "tests/node_metrics.sh: unknown option '$1'" >&2
    exit 2
    ;;
esac
