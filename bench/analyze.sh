#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Speed and memory of `neutracer analyze` on profiler traces, beside Python's json, yajl and Holistic
# Trace Analysis (HTA) where these can be had, and on other files of ranks with one processor and with
# all. The commands run in turns; the tables have the medians.
#
#   bench/analyze.sh [MEGABYTES [RANKS [ROUNDS]]]      PYTHON=... with another HTA
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
bytes=$((${1:-200} * 1000000))
ranks=${2:-4}
rounds=${3:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# As a user of HTA would: parse all ranks, and print where their time goes.
cat >"$dir/breakdown.py" <<'END'
import sys
from hta.trace_analysis import TraceAnalysis
print(TraceAnalysis(trace_dir=sys.argv[1]).get_temporal_breakdown(visualize=False).to_string())
END

# Prints a Python with HTA: that of $PYTHON, or of an environment that is made once in the cache.
# HTA 0.5 does not run with pandas 3.
find_hta() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/neutracer
  local venv=$cache/hta-0.5.0
  if [ -n "${PYTHON:-}" ]; then
    echo "$PYTHON"
    return
  fi
  if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    mkdir -p "$cache"
    python3 -m venv "$venv" && timeout 600 "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 \
      HolisticTraceAnalysis==0.5.0 'pandas<3' && : >"$venv/complete"
  fi >"$dir/pip.log" 2>&1 || true
  echo "$venv/bin/python"
}

# measure NAME BYTES COMMAND...: appends processor time, time and peak memory of the largest process
measure() {
  python3 - "$@" >>"$dir/measured" <<'END'
import resource, subprocess, sys, time
name, size, command = sys.argv[1], sys.argv[2], sys.argv[3:]
start = time.monotonic()
done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
took = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(name, size, used.ru_utime + used.ru_stime, took, used.ru_maxrss / 1000, done.returncode, sep="\t")
END
}

python3 bench/kineto.py "$dir/one" --bytes "$bytes"
python3 bench/kineto.py "$dir/packed" --bytes "$bytes" --gzip
# HTA compares each event with all steps: as few steps as people record.
python3 bench/kineto.py "$dir/ranks" --bytes $((bytes / 2)) --ranks "$ranks" --layers $((bytes / 2 / 30000)) --slow 1
python3 bench/flight.py "$dir/pickles"
python3 bench/flight.py "$dir/dumps" --json
python3 tests/data/systrace.py "$dir/systrace" --ranks 1024 --steps 75 --slow 37:1.3
size=$(stat -c %s "$dir/one/rank0.json")
all=$(cat "$dir/ranks"/*.json | wc -c)

echo "A trace of $((size / 1000000)) MB, one core:"
build/bench/json "$dir/one/rank0.json"
if "${CC:-gcc}" -O2 -o "$dir/yajl" bench/yajl.c -lyajl -lz 2>/dev/null; then
  "$dir/yajl" "$dir/one/rank0.json"
else
  echo 'yajl: not measured (libyajl-dev is not installed)'
fi

python=$(find_hta)
versions='import sys, pandas; from importlib.metadata import version; import hta.trace_analysis
print("HTA", version("HolisticTraceAnalysis"), "with pandas", pandas.__version__, "and Python", sys.version.split()[0])'
has_hta=
if "$python" -c "$versions" >"$dir/versions" 2>"$dir/why"; then
  has_hta=1
  cat "$dir/versions"
else
  echo "Holistic Trace Analysis: not measured ($(cat "$dir/pip.log" "$dir/why" 2>/dev/null | tail -n 1))"
fi

for _ in $(seq "$rounds"); do
  measure 'neutracer analyze' "$size" "$neutracer" analyze "$dir/one/rank0.json"
  measure 'neutracer analyze, gzip' "$size" "$neutracer" analyze "$dir/packed/rank0.json.gz"
  measure "Python's json.load" "$size" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/one/rank0.json"
  measure "neutracer analyze, $ranks ranks" "$all" "$neutracer" analyze "$dir/ranks"
  [ -z "$has_hta" ] || measure "HTA, $ranks ranks" "$all" "$python" "$dir/breakdown.py" "$dir/ranks"
  for kind in pickles dumps systrace; do
    size_of=$(cat "$dir/$kind"/* | wc -c)
    measure "$kind, one processor" "$size_of" taskset -c 0 "$neutracer" analyze "$dir/$kind"
    measure "$kind" "$size_of" "$neutracer" analyze "$dir/$kind"
  done
done

python3 - "$dir/measured" "$rounds" "$ranks" <<'END'
import statistics, sys
runs, failed = {}, {}
for line in open(sys.argv[1]):
    name, size, *numbers, status = line.rstrip("\n").split("\t")
    runs.setdefault((name, int(size)), []).append([float(n) for n in numbers])
    failed[name] = failed.get(name, 0) + (status != "0")
print(f"\nMedians of {sys.argv[2]} rounds. RSS is that of the largest process of a command.\n")
print("| command | MB of files | CPU, s | MB/s of a core | time, s | peak RSS, MB |")
print("|---|---|---|---|---|---|")
median = {}
for (name, size), run in runs.items():
    cpu, took, rss = median[name] = [statistics.median(n) for n in zip(*run)]
    print(f"| {name} | {size / 1e6:.0f} | {cpu:.2f} | {size / 1e6 / cpu:.0f} | {took:.2f} | {rss:.0f} |"
          + (f" ({failed[name]} runs failed)" if failed[name] else ""))
ours, theirs = (median.get(f"{name}, {sys.argv[3]} ranks") for name in ("neutracer analyze", "HTA"))
if theirs and not failed[f"HTA, {sys.argv[3]} ranks"]:
    ratios = [theirs[i] / ours[i] for i in range(3)]
    print("\nHTA takes {:.0f} times our CPU, {:.0f} times our time, {:.0f} times our memory.".format(*ratios))
END
