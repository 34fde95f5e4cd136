#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the analyze command makes of the paths that a person gives it: several and nested directories,
# archives, files of other formats, cut files, and a folder in which nothing is known.
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# same FILE FILE: the reports, except for the names in their first lines.
same() {
  cmp <(tail -n +2 "$1") <(tail -n +2 "$2") || fail "$1 and $2 differ"
}
refused() { # refused TEXT ARG...
  local text=$1 status=0
  shift
  "$neutracer" analyze "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [ "$status" -eq 8 ] || fail "analyze $*: status $status, want 8"
  [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "analyze $*: not one line: $(cat "$dir/err")"
  grep -q -- "$text" "$dir/err" || fail "analyze $*: '$(cat "$dir/err")' does not say '$text'"
}

mkdir -p "$dir/flat" "$dir/nested/a/b" "$dir/nested/c" "$dir/one" "$dir/two"
gloo=tests/data/kineto/gloo_slow
cp $gloo/rank?.json.gz "$dir/flat"
cp $gloo/rank[01].json.gz "$dir/nested/a/b"
cp $gloo/rank[23].json.gz "$dir/nested/c"
cp $gloo/rank[02].json.gz "$dir/one"
cp $gloo/rank[13].json.gz "$dir/two"
"$neutracer" analyze "$dir/flat" >"$dir/flat.txt"
grep -q '^critical: rank 2\|^warning: rank 2' "$dir/flat.txt" || fail "rank 2 is not named"

# Nested and several directories hold the same ranks. A link to a directory above is no loop.
ln -s .. "$dir/nested/a/loop"
"$neutracer" analyze "$dir/nested" >"$dir/nested.txt"
grep -qx 'links to directories (1) were not followed' "$dir/nested.txt" || fail "the link is not noted"
grep -v 'links to directories' "$dir/nested.txt" >"$dir/nested.rest"
same "$dir/flat.txt" "$dir/nested.rest"
"$neutracer" analyze "$dir/one" "$dir/two" >"$dir/several.txt"
same "$dir/flat.txt" "$dir/several.txt"

# Archives.
rm "$dir/nested/a/loop"
(cd "$dir/nested" && python3 -m zipfile -c ../nested.zip a c)
tar -C "$dir/flat" -cf "$dir/flat.tar" .
tar -C "$dir/flat" -czf "$dir/flat.tgz" .
tar -C "$dir" -czf "$dir/flat.tar.gz" flat
for archive in nested.zip flat.tar flat.tgz flat.tar.gz; do
  "$neutracer" analyze "$dir/$archive" >"$dir/archive.txt"
  same "$dir/flat.txt" "$dir/archive.txt"
done
# Names that lead out of an archive are labels.
python3 - "$gloo" "$dir/evil.tar" <<'PY'
import sys
import tarfile

with tarfile.open(sys.argv[2], "w") as tar:
    for rank in range(4):
        tar.add(f"{sys.argv[1]}/rank{rank}.json.gz", arcname=f"../../../tmp/evil/rank{rank}.json.gz")
    link = tarfile.TarInfo("rank7.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar.addfile(link)
PY
"$neutracer" analyze "$dir/evil.tar" >"$dir/evil.txt"
same "$dir/flat.txt" "$dir/evil.txt"
[ ! -e /tmp/evil ] || fail "an archive has written a file"
# One that unpacks to 4096 times its size.
python3 - "$dir/bomb.zip" <<'PY'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as bomb:
    bomb.writestr("rank0.json", b"[" + b" " * (200 << 20))
PY
refused 'bomb.zip: unpacks to more than 256 times its size: 0 of its files were unpacked' "$dir/bomb.zip"
# A file in it that is damaged is named by the archive's name.
head -c 2000 "$dir/flat/rank1.json.gz" >"$dir/two/rank1.json.gz"
(cd "$dir" && python3 -m zipfile -c cut.zip one two)
"$neutracer" analyze --json "$dir/cut.zip" >"$dir/cut.json" 2>/dev/null
"$neutracer" analyze --json "$dir/one" "$dir/two" >"$dir/cut2.json" 2>/dev/null
python3 - "$dir/cut.json" "$dir/cut2.json" "$dir" <<'PY'
import json
import sys

for path, where in ((sys.argv[1], "/cut.zip/two/rank1.json.gz: cut short"), (sys.argv[2], "/two/rank1.json.gz: cut short")):
    report = json.load(open(path))
    assert report["ranks"] == 3 and report["expected_ranks"] == 4, report
    assert sys.argv[3] + where in report["notes"][0] and report["notes"][0].endswith(": left out"), report["notes"]
    assert "3 of 4 ranks were given: incomplete" in report["notes"], report["notes"]
PY
# Nothing but damaged files is an error.
refused 'rank1.json.gz: cut short' "$dir/two/rank1.json.gz"
# Half an archive is what was unpacked of it.
head -c "$(($(stat -c %s "$dir/flat.tar") * 3 / 4))" "$dir/flat.tar" >"$dir/half.tar"
"$neutracer" analyze "$dir/half.tar" >"$dir/half.txt"
grep -q 'half.tar: .*: [123] of its files were unpacked, the rest is missing' "$dir/half.txt" || fail "half an archive passes for whole"

# Files of other formats are named and left out, unless there are as many.
cp tests/data/flight/gloo/rank_0.json.gz "$dir/flat/dump_0.json.gz"
echo '{"learning_rate": 0.1}' >"$dir/flat/config.json"
echo hello >"$dir/flat/README"
"$neutracer" analyze "$dir/flat" >"$dir/stray.txt"
grep -q '^3 files were left out, not of the format of the rest: .*/README, .*/config.json, .*/dump_0.json.gz$' "$dir/stray.txt" ||
  fail "strays are not named"
grep -v 'were left out' "$dir/stray.txt" >"$dir/stray.rest"
same "$dir/flat.txt" "$dir/stray.rest"
mkdir "$dir/mixed"
cp $gloo/rank0.json.gz "$dir/flat/dump_0.json.gz" "$dir/mixed"
refused 'mixed: 1 PyTorch profiler traces and 1 flight-recorder dumps: name the files of one' "$dir/mixed"

# Where nothing is known, the known formats are listed.
mkdir "$dir/unknown"
echo x >"$dir/unknown/notes.txt"
echo '{"a": 1}' >"$dir/unknown/a.json"
: >"$dir/unknown/empty.json"
refused 'unknown: no file of a known format; known are recordings of the bus .*PyTorch profiler traces' "$dir/unknown"

# An export of Nsight Systems, in a directory and in an archive.
python3 - "$dir/nsys" <<'PY'
import os
import sqlite3
import sys

os.mkdir(sys.argv[1])
for rank in range(4):
    db = sqlite3.connect(f"{sys.argv[1]}/report_rank{rank}.sqlite")
    db.executescript("""
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
            deviceId INTEGER NOT NULL, globalPid INTEGER, shortName INTEGER NOT NULL);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL');
    """)
    for step in range(40):
        start, own = step * 200_000_000, 150_000_000 if rank == 1 else 100_000_000 + (step * 7 + rank * 13) % 11 * 20_000
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 1)", (start, start + own))
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 2)", (start + own, start + 190_000_000))
    db.commit()
PY
tar -C "$dir" -czf "$dir/nsys.tgz" nsys
"$neutracer" analyze "$dir/nsys" >"$dir/nsys.txt"
grep -q '^[a-z]*: rank 1 ' "$dir/nsys.txt" || fail "the slow rank of the exports is not named"
grep -q '^host work is not recorded' "$dir/nsys.txt" || fail "exports without calls of the runtime have no note"
"$neutracer" analyze "$dir/nsys.tgz" >"$dir/nsys.packed.txt"
same "$dir/nsys.txt" "$dir/nsys.packed.txt"

# A table of operation times as a timeline: the same culprit.
python3 - tests/data/straggler/trace-AR.csv.gz "$dir/timeline.json.gz" <<'PY'
import csv
import gzip
import json
import sys

kinds = ["compute", "pp-comm", "tp-comm", "dp-comm", "misc"]
events, threads = [], {}
for row in csv.DictReader(gzip.open(sys.argv[1], "rt")):
    kind = 0 if row["optype"].endswith("compute") else 1 if row["optype"].endswith(("send", "recv")) else 3
    thread = int(row["rank"]) * len(kinds) + kind
    threads[thread] = (int(row["dp_rank"]), f"PP rank {row['stage']}, TP rank 0, {kinds[kind]}")
    events.append({"name": row["optype"], "cat": row["optype"], "pid": int(row["dp_rank"]), "tid": thread,
                   "ts": float(row["start_ts"]) * 1e6, "dur": float(row["duration"]) * 1e6, "ph": "X",
                   "args": {"step": int(row["step"]), "model_chunk": None, "mb_id": None, "seq_id": int(row["seq_id"])}})
for thread, (pid, name) in threads.items():
    events.append({"name": "thread_name", "pid": pid, "tid": thread, "ph": "M", "args": {"name": name}})
# In one piece: json.dump() to a file is four times slower.
with gzip.open(sys.argv[2], "wt", compresslevel=1) as out:
    out.write(json.dumps(events))
PY
"$neutracer" analyze --json "$dir/timeline.json.gz" >"$dir/timeline.json"
python3 - "$dir/timeline.json" <<'PY'
import json
import sys

incidents = json.load(open(sys.argv[1]))["incidents"]
assert [(i["class"], [(c["kind"], c["rank"]) for c in i["culprits"]]) for i in incidents] == [("compute", [("rank", 0)])], incidents
PY
