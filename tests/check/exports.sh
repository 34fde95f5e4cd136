#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A function or table that other files see is used by a program, not by tests alone. What else may stay
# is listed here with its reason.
set -euo pipefail

kept() {
  cat <<'KEPT'
nt_bus_reader_fd	a loop without a thread for its reader waits with it
nt_elf_open	tests and bench/ open files by name, which workers never do
nt_memory_u32	what nt_memory_u64() does, of 32 bits
nt_subject_name	what the governor has shed is shown by it (levels)
nt_discover_is_idle	tests wait for it, in place of a time
nt_health_server_port	tests let the system choose the port
nt_slots_reap	what nt_slots_run() does, with the time as an argument
nt_anomaly_node_left_out	tests hold it to its limit: the fleet has the same one, and counts before
nt_spot_new	SPOT on one series: bench-anomaly compares it with the fleet's budget
nt_spot_rules_default	SPOT on one series: bench-anomaly compares it with the fleet's budget
nt_spot_take	SPOT on one series: bench-anomaly compares it with the fleet's budget
KEPT
}

objects=build/release/obj
[ -d "$objects" ] || {
  echo "skip: build: $objects is not there: run 'make'"
  exit 77
}

rooms=(agent aggregator cli common control detect engine proto)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only of sources that are still there: a build folder may be older.
for room in "${rooms[@]}"; do
  find "$room" -name '*.c'
done | sort >"$work/sources"
sed "s|^|$objects/|; s|\.c$|.o|" "$work/sources" | xargs nm --defined-only 2>/dev/null |
  awk '$2 ~ /^[TDBR]$/ && $3 ~ /^nt_/ { print $3 }' | sort -u >"$work/defined"

# A definition and a declaration are two mentions; whatever is used has more. Comments do not count.
find "${rooms[@]}" -name '*.h' | cat "$work/sources" - | xargs cat | awk '
  # Without comments, and without strings such as "*/*" that look like the beginning of one.
  { gsub(/"[^" ]*\/\*[^" ]*"/, "\"\"") }
  inside && !sub(/^.*\*\//, "") { next }
  { inside = 0; gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ") }
  sub(/\/\*.*$/, "") { inside = 1 }
  { print }' | grep -ohE '\bnt_[a-z0-9_]+\b' | sort | uniq -c | awk '{ print $2, $1 }' >"$work/mentions"

bad=0
awk 'NR == FNR { mentions[$1] = $2; next } mentions[$1] <= 2' "$work/mentions" "$work/defined" >"$work/unused"
while IFS= read -r name; do
  kept | cut -f1 | grep -qx "$name" || {
    echo "$name is used by no program: remove it, or make it static"
    bad=1
  }
done <"$work/unused"
while IFS= read -r name; do
  grep -qx "$name" "$work/unused" || {
    echo "$name is used by now: take it off the list of tests/check/exports.sh"
    bad=1
  }
done < <(kept | cut -f1)
exit $bad
