#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Compares the output formats with sysTrace's: the result documents of jobs in its own files, field by
# field (tests/golden/systrace), and the slow steps that its rule finds. Invalid files are refused
# with one line. NT_MORE=1 also runs the cases that differ from others only in layout or number.
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# more COMMAND...: only with NT_MORE=1.
more() {
  [ "${NT_MORE:-}" != 1 ] || "$@"
}

play() { # play NAME ARG...
  local name=$1
  shift
  python3 tests/data/systrace.py "$dir/$name" "$@"
}

# same NAME ARG...: the result of the job is the document of that name.
same() {
  local name=$1
  shift
  play "$name" "$@"
  "$neutracer" analyze --format systrace "$dir/$name" >"$dir/$name.json" 2>/dev/null
  python3 - "tests/golden/systrace/$name.json" "$dir/$name.json" <<'PY' || fail "the result of '$name' differs"
import json
import sys

want, got = (json.load(open(path)) for path in sys.argv[1:])


def compare(path, want, got):
    if isinstance(want, dict) and isinstance(got, dict):
        if list(want) != list(got):
            sys.exit(f"{path}: fields {list(got)}, want {list(want)}")
        for name in want:
            compare(f"{path}.{name}", want[name], got[name])
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, pair in enumerate(zip(want, got)):
            compare(f"{path}[{i}]", *pair)
    elif type(want) is not type(got) or want != got:
        sys.exit(f"{path}: {got!r}, want {want!r}")


compare("result", want, got)
PY
}

same healthy
same slow --ranks 8 --slow 3:1.3
more same large --layout fsdp --ranks 20 --slow 3:1.3
more same host --ranks 8 --slow 3:2:60:host
same alone --ranks 2 --tp 2 --slow 1:1.3:60
same lacks --empty 9
same network --nic 3:5:60
"$neutracer" analyze --json "$dir/network" | grep -q '"class": "network"' || fail "network is not said in JSON"

# names 'RANK...' ARG...: whom the result accuses. Cases that sysTrace gets wrong, or only just right.
names() {
  local want=$1 got
  shift
  rm -rf "$dir/job"
  play job --steps 80 "$@"
  got=$("$neutracer" analyze --format systrace "$dir/job" 2>/dev/null |
    python3 -c 'import json, sys; print(*(a["objectId"] for a in json.load(sys.stdin)["abnormalDetail"]))')
  [ "$got" = "$want" ] || fail "the result of $* accuses '$got', want '$want'"
}

names 5 --slow 5:1.05
names '' --hiccups 0.01
names 5 --layout fsdp --slow 5:1.3 --no-step-sync
more names 5 --slow 5:1.05:40
more names '' --no-step-sync
more names 5 --no-step-sync --slow 5:1.3
more names 5 --layout ddp --slow 5:1.3
more names 9 --tp 2 --slow 9:1.3
more names '' --tp 2
names 9 --tp 4 --pp 2 --slow 9:1.3
names '8 9 10 11 12 13 14 15' --slow-node 1:1.3:40

# by_rules 'RANK...' RULES ARG...: whom sysTrace's own detectors accuse, right or wrong, with its
# parameters as shipped, but those of the space detector.
by_rules() {
  local want=$1 space=$2 got
  shift 2
  rm -rf "$dir/job"
  play job --steps 130 "$@"
  cat >"$dir/metric_config.json" <<JSON
{"HcclAllGather": {"type": "compute", "alarm_filter_window_size": 5,
  "aggregation": {"during_s": 3, "funcs": [{"func": "percentile", "func_params": {"q": 90}}]},
  "space_detector": {"type": "SlidingWindowDBSCAN", $space},
  "time_detector": {"type": "SlidingWindowKSigmaDetector", "preprocess_eps": 0.1,
    "preprocess_min_samples": 10, "n_sigma_method": {"type": "SlidingWindowNSigma",
      "training_window_size": 20, "min_update_window_size": 10, "min_std_val": 0.0001, "bias": 0.1,
      "abs_bias": null, "nsigma_coefficient": 4, "detect_type": "upper_bound"}}}}
JSON
  got=$("$neutracer" analyze --format systrace --rules "$dir/metric_config.json" "$dir/job" |
    python3 -c 'import json, sys; print(*(a["objectId"] + ":" + a["methodType"] for a in json.load(sys.stdin)["abnormalDetail"]))')
  [ "$got" = "$want" ] || fail "with $space the result of $* accuses '$got', want '$want'"
}

shipped='"eps": 0.4, "cv_threshold": 0.03, "min_samples": 2, "window_size": 22, "scaling": false'
by_rules '' "$shipped"
by_rules 5:SPACE "$shipped" --slow 5:1.05
by_rules '5:SPACE 9:LACK' "$shipped" --slow 5:1.3 --empty 9
more by_rules '' "${shipped/0.4/40}" --slow 5:1.3
more by_rules '' "${shipped/22/220}" --slow 5:1.3
# As measured of sysTrace itself: it does not see a node.
more by_rules '' "$shipped" --slow-node 1:1.3:40
if "$neutracer" analyze --rules "$dir/metric_config.json" "$dir/job" 2>"$dir/error"; then
  fail "--rules prints another document"
fi
grep -q 'requires --format systrace' "$dir/error" || fail "$(cat "$dir/error")"
echo '{"HcclAllGather": {"space_detector": {"eps": "big"}}}' >"$dir/metric_config.json"
if "$neutracer" analyze --format systrace --rules "$dir/metric_config.json" "$dir/job" 2>"$dir/error"; then
  fail "an eps that is no number is taken"
fi
grep -q 'HcclAllGather.space_detector.eps: "big": expected a number from' "$dir/error" || fail "$(cat "$dir/error")"

# A job's steps by sysTrace's rule, computed here from the files: those whose end is the call that all
# ranks make once a step.
steps() { # steps NAME PYTHON
  "$neutracer" analyze --format systrace-steps "$dir/$1" >"$dir/$1.steps.json"
  python3 - "$dir/$1.steps.json" "$dir/$1"/*.0.csv "$2" <<'PY' || fail "the steps of '$1' differ"
import csv
import datetime
import json
import sys

got = json.load(open(sys.argv[1]))
name, ends = {}, []
for row in csv.DictReader(open(sys.argv[2])):
    name[row["Id"]] = row["Name"] or name[row["Id"]]
    if not row["Name"] and row["SourceKind"] == "1" and "!sync!" in name[row["Id"]]:
        ends.append(int(row["Timestamp"]))
took = [(b - a) / 1e6 for a, b in zip(ends, ends[1:])]


def text(ms):
    return f"{round(ms, 1):g}ms"


points = []
for i in range(10, len(took) - 1):
    mean = sum(took[i - 10 : i]) / 10
    sigma = (sum((x - mean) ** 2 for x in took[i - 10 : i]) / 10) ** 0.5
    if all(x - mean > 2 * sigma and (x - mean) / mean > 0.2 for x in took[i : i + 2]):
        points.append((i, (took[i] - mean) / mean, took[i], mean))
want = {
    "is_anomaly": bool(points),
    "anomaly_count_times": len(points),
    "anomaly_info": [
        {
            "training_step": i,
            "anomaly_time": datetime.datetime.fromtimestamp(ends[i] // 10**9, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
            "anomaly_degree": round(degree, 3),
            "anomaly_training_time": text(slow),
            "normal_training_time": text(mean),
        }
        for i, degree, slow, mean in points
    ],
    "anomaly_type": "failSlow" if points else "normal",
    "start_time": ends[0] // 10**6,
    "end_time": ends[-1] // 10**6,
}
if sys.argv[3] == "same":
    assert list(got) == list(want), list(got)
    assert got == want, f"{got}, want {want}"
    assert [list(a) for a in got["anomaly_info"]] == [list(a) for a in want["anomaly_info"]]
else:
    # Too small for that rule, and an incident all the same: said once.
    assert not points and got["is_anomaly"] and got["anomaly_type"] == "failSlow", got
    assert got["anomaly_count_times"] == len(got["anomaly_info"]) == 1, got
    point = got["anomaly_info"][0]
    assert list(point) == ["training_step", "anomaly_time", "anomaly_degree", "anomaly_training_time", "normal_training_time"], point
    assert 58 <= point["training_step"] <= 62 and 0.07 < point["anomaly_degree"] < 0.13, point
PY
}

steps healthy same
play jump --slow-job 1.5:60
steps jump same
play rank --slow 3:1.6:60
steps rank same
play small --slow-job 1.1:60
steps small once

refused() { # refused STATUS TEXT ARG...
  local want=$1 text=$2 status=0
  shift 2
  "$neutracer" analyze "$@" >"$dir/out" 2>"$dir/err" || status=$?
  [ "$status" -eq "$want" ] || fail "analyze $*: status $status, want $want"
  [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "analyze $*: not one line: $(cat "$dir/err")"
  grep -q -- "$text" "$dir/err" || fail "analyze $*: '$(cat "$dir/err")' does not say '$text'"
  [ ! -s "$dir/out" ] || fail "analyze $*: printed a report"
}

file=$dir/alone/hccl_activity-10.0.0.1-.0.csv
refused 2 'give only one of them' --json --format systrace "$dir/alone"
refused 2 'format' --format nonsense "$dir/alone"
refused 8 'no markers of sysTrace' --from systrace tests/golden/systrace
refused 8 'rank unknown: expected a file name' --from systrace LICENSE
sed -i '7s/,,0,/,,7,/' "$file"
refused 8 'alone/hccl_activity-10.0.0.1-.0.csv:7: SourceKind is ' "$file"
# One bad file of several is named, and its rank is missing.
"$neutracer" analyze --json "$dir/alone" >"$dir/rest.json" 2>"$dir/rest.txt"
grep -q 'hccl_activity-10.0.0.1-.0.csv:7: SourceKind is .*: left out$' "$dir/rest.txt" ||
  fail "a file that was left out is not named: $(cat "$dir/rest.txt")"
head -c 100000 "$dir/healthy/hccl_activity-10.0.0.1-.4.csv" >"$file"
refused 8 "alone/hccl_activity-10.0.0.1-.0.csv:$(wc -l <"$file" | awk '{ print $1 + 1 }'): " "$file"
# Damaged bytes, anywhere in a packed file: a line and a reason, or no harm at all.
gzip -c "$dir/alone/hccl_activity-10.0.0.1-.1.csv" >"$dir/hccl_activity-10.0.0.1-.1.csv.gz"
head -c 4000 "$dir/hccl_activity-10.0.0.1-.1.csv.gz" >"$file.gz"
rm "$file"
refused 8 '\.0\.csv\.gz:[0-9]*: damaged: the file is cut short' "$file.gz"
