#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A few jobs of both foreign generators in each format: no accusation is wrong, and most faults are found.
# `make bench-foreign` plays more of them.
set -uo pipefail

# The healthy jobs of FSDP in sysTrace's files have cards that are slower by nature: no rank is accused.
plays=(
  "engine straggler 1..20" "engine kineto 1..12" "engine systrace 1..8"
  "streams straggler 1..8" "streams kineto 2..4" "streams systrace 4..6"
)
echo "1..${#plays[@]}"
for i in "${!plays[@]}"; do
  read -r generator format seeds <<<"${plays[i]}"
  log=$(python3 -B tests/foreign/score.py --generator "$generator" --seeds "$seeds" --format "$format" --min-recall 0.8 \
    --min-precision 1 --bin "${NT_BIN:-build/release/bin}/neutracer" 2>&1) && echo "ok $((i + 1)) - $generator $format" && continue
  echo "not ok $((i + 1)) - $generator $format"
  echo "# ${log//$'\n'/$'\n'# }"
done
