#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Speed and memory of `neutracer analyze` on profiler traces, beside Python's json, yajl and Holistic
# Trace Analysis where these are installed.
#
#   bench/analyze.sh [MEGABYTES [RANKS]]      PYTHON=... with HTA
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
bytes=$((${1:-200} * 1000000))
ranks=${2:-4}
python=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# measure NAME BYTES COMMAND...: processor time, time, peak memory
measure() {
  python3 - "$@" <<'END'
import os, resource, subprocess, sys, time
name, size, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
start = time.monotonic()
done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
took = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(f"| {name} | {size / 1e6:.0f} | {cpu:.2f} | {size / 1e6 / cpu:.0f} | {took:.2f} | {used.ru_maxrss / 1000:.0f} |"
      + (f" (exit status {done.returncode})" if done.returncode else ""))
END
}

python3 bench/kineto.py "$dir/one" --bytes "$bytes"
python3 bench/kineto.py "$dir/packed" --bytes "$bytes" --gzip
python3 bench/kineto.py "$dir/ranks" --bytes $((bytes / 2)) --ranks "$ranks" --slow 1
size=$(stat -c %s "$dir/one/rank0.json")
all=$(cat "$dir/ranks"/*.json | wc -c)

echo "A trace of $((size / 1000000)) MB, one core:"
build/bench/json "$dir/one/rank0.json"
if "${CC:-gcc}" -O2 -o "$dir/yajl" bench/yajl.c -lyajl -lz 2>/dev/null; then
  "$dir/yajl" "$dir/one/rank0.json"
else
  echo 'yajl: not measured (libyajl-dev is not installed)'
fi

echo
echo '| command | MB of JSON | CPU, s | MB/s of a core | time, s | peak RSS, MB |'
echo '|---|---|---|---|---|---|'
measure 'neutracer analyze' "$size" "$neutracer" analyze "$dir/one/rank0.json"
measure 'neutracer analyze, gzip' "$size" "$neutracer" analyze "$dir/packed/rank0.json.gz"
measure "neutracer analyze, $ranks ranks" "$all" "$neutracer" analyze "$dir/ranks"
measure "Python's json.load" "$size" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/one/rank0.json"
if "$python" -c 'import hta' 2>/dev/null; then
  hta='import sys; from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_dir=sys.argv[1])'
  measure "HTA's TraceAnalysis(), $ranks ranks" "$all" "$python" -c "$hta" "$dir/ranks"
else
  echo
  echo 'Holistic Trace Analysis: not measured (no module hta)'
fi
