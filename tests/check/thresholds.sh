#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What decides in detect/ is a row of detect/thresholds/thresholds.def: the docs are printed from the rows, each
# row is used, the tests that rows name exist, and no other number decides.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests/thresholds.sh >"$work/list"
[ -s "$work/list" ] || {
  echo "no threshold found in detect/thresholds/thresholds.def"
  exit 1
}

# ---- the rows ------------------------------------------------------------------------------------

tests/files.sh '^(detect|engine|cli|aggregator)/.*\.[ch]$' | grep -v '/thresholds\.h$' |
  tr '\n' '\0' | xargs -0 cat >"$work/users"
while IFS=$'\t' read -r _ kind name value _ reason source; do
  [ -n "$value" ] || report "$name has no value"
  case $reason in
    [A-Z]*.) ;;
    *) report "$name: the reason is a sentence with a full stop: '$reason'" ;;
  esac
  case $source in
    'Test '*)
      grep -rqw --include='*.c' -e "${source#Test }" tests/unit || report "$name: there is no test ${source#Test }"
      ;;
    [A-Z]*) ;;
    *) report "$name: no source" ;;
  esac
  if [ "$kind" = rule ]; then
    grep -qE "rules(\.|->)$name\b" "$work/users" || report "$name is a row that nothing uses"
  else
    grep -qw "$name" "$work/users" ||
      grep -E '^NT_' detect/thresholds/thresholds.def | grep -vE "^NT_[A-Z]+\($name," | grep -qw "$name" ||
      report "$name is a row that nothing uses"
  fi
done <"$work/list"

# ---- the docs ------------------------------------------------------------------------------------

page=docs/thresholds.md
tests/thresholds.sh --markdown >"$work/want"
sed -n '/^<!-- thresholds: /,/^<!-- end of thresholds -->$/p' "$page" | sed '1d;$d' >"$work/have"
diff -u "$work/have" "$work/want" >"$work/diff" || {
  cat "$work/diff"
  report "the thresholds in $page are not those of the program: run 'tests/thresholds.sh --write'"
}

# ---- other numbers -------------------------------------------------------------------------------

# Statistics and formats of bytes have numbers of their own, which are no thresholds. Elsewhere allowed are: 0, 1, 2, halves, percent and units; hexadecimal numbers and
# indices; and lines with the words of this list: caps of memory, numbers of loops over bits and of signals.
cat >"$work/allowed" <<'END'
i < 24
NT_RANKS_AHEAD
NT_CACHE_LINE
NT_ANOMALY_METRICS_MAX
NT_ANOMALY_VALUE_MAX
0x1p-53
NT_ANOMALY_NAME_BYTES
NT_ANOMALY_RANKED
vector_size
SENSING_ALIGN
STEP = 4
SPARE = 4
STRIDE = 2
aligned_alloc
APART
SIGNAL_
3 * next
4 * sizeof
cap : 16
i < 8
8 * i
KEY_SHIFT
NT_TURN_CROWDED
NT_DETECT_COMM_MAX
NT_DETECT_COMM_OPS
NT_FINDING_MAX_EVIDENCE
NT_COMPLETENESS_MAX
NT_COLLECTIVE_ROUND_OPS
NT_HISTORY_ROUNDS
NT_BEGAN_FRAMES
NT_INCIDENT_MAX_OPEN
NT_INCIDENT_MAX_NAMES
NT_KSIGMA_MAX_WINDOW
NT_MATRIX_CELLS
NT_NIC_NODES_MAX
NT_RECOVERY_BUCKETS
END
# shellcheck disable=SC2016 # the dollars are awk's
tests/files.sh '^detect/.*\.[ch]$' | grep -vE '/(stats|codec|cosine|lesinn|frame|state[a-z_]*)\.[ch]$' |
  tr '\n' '\0' | xargs -0 awk -v list="$work/allowed" '
BEGIN {
  while ((getline line < list) > 0)
    words[++lines] = line
  split("0.0 0.5 1.0 2.0 100.0 1e6 1e9 1e-9 3600e9 86400e9", some, " ")
  for (i in some)
    plain[some[i]] = 1
}
FNR == 1 { comment = 0 }
# Without comments, strings and characters.
{
  rest = $0
  code = ""
  while (rest != "") {
    if (comment) {
      at = index(rest, "*/")
      comment = !at
      rest = at ? substr(rest, at + 2) : ""
    } else if (match(rest, /\/[*]|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
      code = code substr(rest, 1, RSTART - 1) " "
      comment = substr(rest, RSTART, 2) == "/*"
      rest = substr(rest, RSTART + RLENGTH)
    } else {
      code = code rest
      rest = ""
    }
  }
}
code ~ /^[ \t]*#[ \t]*include/ { next }
{
  for (i = 1; i <= lines; i++)
    if (index(code, words[i]))
      next
  # A number that has a name is a threshold, whatever it is.
  named = code ~ /const (double|float|u?int[0-9]*(_t)?|size_t) [a-z_0-9]+ = -?[0-9.][^;]*;/ &&
    code !~ /= [^;]*[a-z_]+[^;]*;/
  if (code ~ /^[ \t]*#[ \t]*define [A-Z_0-9]+ \(?-?[0-9.]/ || code ~ /^\t[A-Z][A-Z_0-9]* = [0-9]/)
    named = code !~ / (= )?[01],?[ ]*$/
  rest = code
  while (match(rest, /[A-Za-z_][A-Za-z0-9_]*|[.]?[0-9]([eEpP][-+]|[A-Za-z0-9_.])*/)) {
    token = substr(rest, RSTART, RLENGTH)
    index_of = substr(rest, RSTART - 1, 1) == "[" && substr(rest, RSTART + RLENGTH, 1) == "]"
    rest = substr(rest, RSTART + RLENGTH)
    if (token !~ /^[.0-9]/ || token ~ /^0[xX]/)
      continue
    sub(/[uUlLF]+$/, "", token)
    if (!named && (token in plain || token ~ /^[012]$/ || index_of))
      continue
    print FILENAME ":" FNR ": " token " decides: make it a row of detect/thresholds/thresholds.def"
    bad = 1
    break
  }
}
END { exit bad }
' || bad=1
exit $bad
