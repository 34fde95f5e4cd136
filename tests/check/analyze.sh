#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The analyze command on recorded jobs, as a person types it: the profiler traces name nobody and say
# who came last at each of the eight collectives, and what it refuses it refuses in one line.
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

tar -xzf tests/data/kineto/dlrm_kineto.tar.gz -C "$dir"
"$neutracer" analyze --json "$dir/dlrm_kineto" >"$dir/kineto.json"
python3 - "$dir/kineto.json" <<'PY'
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["ranks"] == 8, report["ranks"]
assert report["incidents"] == [], report["incidents"]
last = [c["last_rank"] for c in report["collectives"]]
assert last == [7, 7, 7, 7, 7, 5, 5, 4], last
PY
# One step is not enough to know whether anybody is slow, and the report says so.
"$neutracer" analyze "$dir/dlrm_kineto" >"$dir/kineto.txt"
grep -q '^1 step: at least [0-9]* are needed to name a culprit' "$dir/kineto.txt" ||
  fail "one step is not said to be too little"
grep -qx 'too little was recorded to name a culprit' "$dir/kineto.txt" ||
  fail "the report on Kineto traces accuses somebody, or says that nobody is to blame"
"$neutracer" analyze "$dir"/dlrm_kineto/*.json >"$dir/files.txt"
"$neutracer" analyze "$dir/dlrm_kineto" >"$dir/folder.txt"
cmp <(tail -n +2 "$dir/files.txt") <(tail -n +2 "$dir/folder.txt") || fail "files and their folder differ"

# Some of the files say of how many ranks they are some.
"$neutracer" analyze "$dir"/dlrm_kineto/worker[024]_* >"$dir/some.txt"
grep -qx '3 of 8 ranks were given: incomplete' "$dir/some.txt" || fail "three of eight files pass for all"
! grep -q 'incomplete' "$dir/folder.txt" || fail "eight of eight files are called incomplete"

# Two cycles of four ranks, of which one file is cut: it is named, and the others are judged.
mkdir "$dir/cycles"
python3 - "$dir/cycles" <<'PY'
import json
import sys

for rank in range(4):
    for cycle in range(2):
        events = []
        for step in range(20):
            start = (cycle * 1000 + step) * 100000 + 1000000
            own = (60000 if rank == 1 else 40000) + (step * 7 + rank * 13) % 11 * 20
            events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": 100000},
                       {"ph": "X", "cat": "kernel", "name": "gemm", "ts": start, "dur": own, "args": {}},
                       {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32", "ts": start + own,
                        "dur": 90000 - own, "args": {}}]
        text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events})
        with open(f"{sys.argv[1]}/rank{rank}-cycle{cycle}.json", "w") as file:
            file.write(text[:2000] if (rank, cycle) == (2, 0) else text)
PY
"$neutracer" analyze "$dir/cycles" >"$dir/cycles.txt"
grep -q 'rank2-cycle0.json.*: left out$' "$dir/cycles.txt" || fail "a cut file of several is not named"
grep -q 'incomplete data$' "$dir/cycles.txt" || fail "the verdict is not said to be on incomplete data"
grep -q '^critical: rank 1 ' "$dir/cycles.txt" || fail "the others are not judged"

"$neutracer" analyze --json tests/data/straggler/trace-AR.csv.gz >"$dir/ar.json"
python3 - "$dir/ar.json" <<'PY'
import json
import sys

incidents = json.load(open(sys.argv[1]))["incidents"]
assert [(i["class"], [(c["kind"], c["rank"]) for c in i["culprits"]]) for i in incidents] == [("compute", [("rank", 0)])], incidents
# Its authors' simulation of the job without the fault gives 1.97.
assert abs(incidents[0]["slowdown"] / 1.97 - 1) < 0.05, incidents
PY
# Random sequence lengths are uneven work by turns: of the job, and of each stage by itself.
gzip -dc tests/data/straggler/trace-SE-cut.csv.gz >"$dir/se.csv"
for stage in 0 1; do
  awk -F, -v stage="$stage" 'NR == 1 || $2 == stage' "$dir/se.csv" >"$dir/se-$stage.csv"
done
for trace in se se-0 se-1; do
  "$neutracer" analyze "$dir/$trace.csv" >"$dir/$trace.txt"
  [[ $(grep -cE '^(info|warning|critical): ' "$dir/$trace.txt") == 1 ]] || fail "$trace has not one verdict"
  grep -q '^info: the work is uneven by turns, no rank is at fault' "$dir/$trace.txt" ||
    fail "$trace is not said to be uneven by turns"
done
# Where the work is uneven, that is said, and it is nobody's fault.
"$neutracer" analyze --json tests/data/straggler/trace-ST.csv.gz >"$dir/st.json"
python3 - "$dir/st.json" <<'PY'
import json
import sys

incidents = json.load(open(sys.argv[1]))["incidents"]
assert [(i["class"], i["severity"]) for i in incidents] == [("imbalance", "info")], incidents
assert {c["kind"] for i in incidents for c in i["culprits"]} <= {"stage"}, incidents
PY
"$neutracer" analyze tests/data/straggler/trace-ST.csv.gz | grep -q 'no rank, node or link is to blame' ||
  fail "the report on the uneven job accuses somebody"
# One rank in one window.
zcat tests/data/straggler/trace-AR.csv.gz | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
  NR == 1 || ($at["rank"] == 0 && $at["step"] == first) || (first == "" && $at["rank"] == 0 && (first = $at["step"]) != "")' \
  >"$dir/one.csv"
"$neutracer" analyze --html "$dir/one.html" "$dir/one.csv" >"$dir/one.txt"
grep -q ': 1 rank, 1 window, ' "$dir/one.txt" || fail "one rank: $(head -n 1 "$dir/one.txt")"
grep -q ': 1 rank, 1 window, ' "$dir/one.html" || fail "the page on one rank has another number"
# The same input, the same verdict, byte for byte.
"$neutracer" analyze --json tests/data/straggler/trace-AR.csv.gz | cmp - "$dir/ar.json" || fail "two runs differ"

# Dumps of the flight recorder are told by their content, and name who stayed out.
"$neutracer" analyze --json tests/data/flight/gloo >"$dir/flight.json"
python3 - "$dir/flight.json" <<'PY'
import json
import sys

report = json.load(open(sys.argv[1]))
incidents = report["incidents"]
assert report["ranks"] == 4, report["ranks"]
assert [(i["class"], i["cause"], [c["rank"] for c in i["culprits"]]) for i in incidents] == [("hang", "laggard", [2])], incidents
PY
# Without an ending too, as PyTorch names them, in a directory or one by one.
mkdir "$dir/dumps"
for rank in 0 1 2 3; do
  gzip -dc "tests/data/flight/gloo/rank_$rank.json.gz" >"$dir/dumps/nccl_trace_rank_$rank"
done
"$neutracer" analyze "$dir/dumps" >"$dir/folder.txt"
"$neutracer" analyze --from flight-recorder "$dir"/dumps/* >"$dir/files.txt"
cmp <(tail -n +2 "$dir/files.txt") <(tail -n +2 "$dir/folder.txt") || fail "dumps and their folder differ"
grep -q '^critical: rank 2 has not entered' "$dir/folder.txt" || fail "the laggard of the dumps is not named"

refused() { # refused STATUS TEXT ARG...
  local want=$1 text=$2 status=0
  shift 2
  "$neutracer" analyze "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [ "$status" -eq "$want" ] || fail "analyze $*: status $status, want $want"
  [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "analyze $*: not one line: $(cat "$dir/err")"
  grep -q -- "$text" "$dir/err" || fail "analyze $*: '$(cat "$dir/err")' does not say '$text'"
  [ ! -s "$dir/out" ] || fail "analyze $*: printed a report"
}

mkdir "$dir/empty"
refused 8 'no file of a known format; known are recordings of the bus' "$dir/empty"
refused 8 'no recordings of the bus in it' --from recording "$dir/empty"
# A recording whose only segment is noise is damaged, not missing.
mkdir -p "$dir/noise/neutracer.window.v1/0"
head -c 5000 /dev/urandom >"$dir/noise/neutracer.window.v1/0/00000000000000000000.seg"
refused 8 'damaged.*neutracer.window.v1/0/00000000000000000000.seg: 5000 bytes' "$dir/noise"
refused 8 'No such file' "$dir/none.csv"
head -c 1000 "$dir/dumps/nccl_trace_rank_1" >"$dir/dumps/nccl_trace_rank_0"
refused 8 'nccl_trace_rank_0:1: invalid JSON at byte' "$dir/dumps/nccl_trace_rank_0"
python3 -c 'import os, pickle, sys; pickle.dump({"version": "2.5", "pg_config": os.system}, sys.stdout.buffer, 2)' \
  >"$dir/dumps/nccl_trace_rank_0"
refused 8 'nccl_trace_rank_0: byte 46 of the pickle: opcode 0x63: only numbers' \
  --from flight-recorder "$dir/dumps/nccl_trace_rank_0"
refused 8 'no flight-recorder dumps in it: \*.json, \*.pkl or \*RANK' --from flight-recorder "$dir/empty"
refused 8 'no file of a known format' LICENSE
refused 8 'name a single file' tests/data/straggler/trace-AR.csv.gz tests/data/straggler/trace-ST.csv.gz
refused 2 'from' --from nonsense LICENSE

# What concerns tables of metrics alone is refused for others, before anything is read or written.
table=tests/data/straggler/trace-AR.csv.gz
for option in --scores=$dir/scores.csv --peers --anomaly-method=both --false-alarms=1 --row-interval=5s; do
  refused 2 "${option%%=*} requires tables of a node's metrics: --from metrics-csv" "$option" "$table"
done
[ ! -e "$dir/scores.csv" ] || fail "scores of a table of operation times are written"
"$neutracer" analyze --from metrics-csv --scores "$dir/scores.csv" tests/data/anomaly/asd-1.csv.gz >"$dir/out"
[ -s "$dir/scores.csv" ] || fail "no scores of a table of metrics are written"

# unwritten ARG...: a file that cannot be written is named, and the report is printed all the same.
unwritten() {
  local status=0
  "$neutracer" analyze "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [ "$status" -eq 9 ] || fail "analyze $*: status $status, want 9"
  [ "$(cat "$dir/err")" = "neutracer: analyze: write '$dir/none/x': No such file or directory" ] ||
    fail "analyze $*: '$(cat "$dir/err")'"
  [ -s "$dir/out" ] || fail "analyze $*: the report is not printed"
}
unwritten --html "$dir/none/x" "$table"
unwritten --html "$dir/none/x" --from metrics-csv tests/data/anomaly/asd-1.csv.gz
unwritten --scores "$dir/none/x" --from metrics-csv tests/data/anomaly/asd-1.csv.gz
# Of two such files each is named.
"$neutracer" analyze --from metrics-csv --html "$dir/none/x" --scores "$dir/none/y" \
  tests/data/anomaly/asd-1.csv.gz >"$dir/out" 2>"$dir/err" && fail "two unwritten files are no error"
[ "$(grep -c "write '$dir/none/[xy]': No such file" "$dir/err")" -eq 2 ] ||
  fail "of two unwritten files: '$(cat "$dir/err")'"
