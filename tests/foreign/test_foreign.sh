#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A few jobs of the second generator in each format: no accusation is wrong, and most faults are found.
# `make bench-foreign` plays more of them.
set -uo pipefail

n=0
declare -A seeds=([straggler]=1..20 [kineto]=1..12 [systrace]=1..8)
echo "1..${#seeds[@]}"
for format in "${!seeds[@]}"; do
  n=$((n + 1))
  log=$(python3 -B tests/foreign/score.py --seeds "${seeds[$format]}" --format "$format" --min-recall 0.8 --min-precision 1 \
    --bin "${NT_BIN:-build/release/bin}/neutracer" 2>&1) && echo "ok $n - $format" && continue
  echo "not ok $n - $format"
  echo "# ${log//$'\n'/$'\n'# }"
done
