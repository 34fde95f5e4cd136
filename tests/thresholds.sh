#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the thresholds of the detection, one per line: group, kind, name, value, unit, reason,
# source, separated by tabs. The compiler reads them from detect/thresholds/thresholds.def and
# computes derived ones.
#
#   tests/thresholds.sh                    the list
#   tests/thresholds.sh --markdown         the tables of docs/thresholds.md
#   tests/thresholds.sh --write            updates docs/thresholds.md, between its marks
set -euo pipefail

page=docs/thresholds.md

list() {
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # now
  trap "rm -rf '$work'" RETURN
  cat >"$work/list.c" <<'C'
#include <stdint.h>
#include <stdio.h>

#include "detect/thresholds/thresholds.h"

#define NT_GROUP(title) {title, "", "", "", 0, "", "", ""},
#define NT_RULE(type, name, value, unit, reason, source) {"", "rule", #name, #value, value, unit, reason, source},
#define NT_COUNT(name, value, unit, reason, source) {"", "count", #name, #value, value, unit, reason, source},
#define NT_REAL(name, value, unit, reason, source) {"", "real", #name, #value, value, unit, reason, source},
#define NT_TIME(name, value, unit, reason, source) {"", "time", #name, #value, value, unit, reason, source},

int main(void)
{
	static const struct {
		const char *group, *kind, *name, *text;
		double value;
		const char *unit, *reason, *source;
	} row[] = {
#include "detect/thresholds/thresholds.def"
	};
	const char *group = "";

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (!*row[i].kind)
			group = row[i].group;
		else
			printf("%s\t%s\t%s\t%s\t%.15g\t%s\t%s\t%s\n", group, row[i].kind, row[i].name, row[i].text,
			       row[i].value, row[i].unit, row[i].reason, row[i].source);
	}
	return 0;
}
C
  "${CC:-gcc}" -std=gnu17 -I. -o "$work/list" "$work/list.c"
  # Times in seconds. A real number as it is written, an integer as it is computed.
  "$work/list" | awk -F'\t' -v OFS='\t' '{
    if ($6 == "s")
      $4 = sprintf("%.10g", $5 / 1e9)
    else if ($2 == "count" || $4 !~ /[.e]/)
      $4 = $5 ($4 ~ /NT_/ ? " = `" $4 "`" : "")
    else if ($4 ~ /^[0-9.]+ \/ [0-9.]+$/)
      gsub(/[.]0| /, "", $4)
    else
      sub(/[.]0$/, "", $4)
    print $1, $2, $3, $4, $6, $7, $8
  }'
}

markdown() {
  list | awk -F'\t' '
    BEGIN {
      note["Slow rank"] = "A rank is slow when its sum of evidence reaches the threshold that the group\n" \
        "[Sum of evidence](#sum-of-evidence-cusum) defines. The rows below are further conditions."
    }
    $1 != group {
      group = $1
      print "\n## " group "\n\n" (group in note ? note[group] "\n\n" : "") "| name | value | unit | reason | source |\n|---|---|---|---|---|"
    }
    { print "| `" $3 "` | " $4 " | " $5 " | " $6 " | " gensource($7) " |" }
    END { print "" }
    function gensource(text) { return text ~ /^Test / ? "Test `" substr(text, 6) "`" : text }'
}

case ${1:-} in
  '') list ;;
  --markdown) markdown ;;
  --write)
    table=$(mktemp) new=$(mktemp)
    trap 'rm -f "$table" "$new"' EXIT
    markdown >"$table"
    awk -v table="$table" '
      /^<!-- thresholds: / { print; while ((getline line < table) > 0) print line; skip = 1; next }
      /^<!-- end of thresholds -->$/ { skip = 0 }
      !skip
    ' "$page" >"$new"
    cat "$new" >"$page"
    ;;
  *)
    echo "tests/thresholds.sh: unknown option '$1'" >&2
    exit 2
    ;;
esac
