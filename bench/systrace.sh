#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Verdicts on played jobs in sysTrace's files: of SEEDS draws of each case, how many results accuse
# exactly those that are at fault. The table of docs/systrace.md.
set -euo pipefail

neutracer=${NT_BIN:-build/release/bin}/neutracer
seeds=${SEEDS:-6}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# row NAME 'RANK...' SYSTRACE ARG...
row() {
  local name=$1 want=$2 theirs=$3 jitter exact text=
  shift 3
  for jitter in 0.002 0.02; do
    exact=0
    for seed in $(seq "$seeds"); do
      rm -rf "$dir/job"
      python3 tests/data/systrace.py "$dir/job" --seed "$seed" --jitter "$jitter" "$@"
      "$neutracer" analyze --format systrace "$dir/job" 2>/dev/null |
        python3 -c 'import json, sys; print(*(a["objectId"] for a in json.load(sys.stdin)["abnormalDetail"]))' >"$dir/got"
      [ "$(<"$dir/got")" != "$want" ] || exact=$((exact + 1))
    done
    text+=" $exact of $seeds |"
  done
  echo "| $name | $theirs |$text"
}

echo "| case | sysTrace, exact | jitter 0.2 % | 2 % |"
echo "|---|---|---|---|"
row 'tp8, no fault' '' 'all' --slow 0:1
row 'tp8, one rank ×1.05' 5 'all' --slow 5:1.05
row 'tp8, one rank ×1.3' 5 'all' --slow 5:1.3
row 'tp8, one rank ×1.3 from the middle' 5 'all' --slow 5:1.3:60
row 'tp4, one rank ×1.3' 6 'all' --tp 4 --slow 6:1.3
row 'fsdp, one rank ×1.3' 6 'all' --layout fsdp --slow 6:1.3
row 'tp8, no fault, ranks hiccup (1 % of phases ×3)' '' 'none, 71 ranks of 96 accused' --hiccups 0.01
row 'tp8, no fault, steps not synchronised' '' 'none, 75 ranks of 96 accused' --no-step-sync
row 'tp8, one rank ×1.3, steps not synchronised' 5 'none' --no-step-sync --slow 5:1.3
row 'tp8, a node ×1.3 from the middle' '8 9 10 11 12 13 14 15' 'none (not found)' --slow-node 1:1.3:60
row 'fsdp, one rank ×1.3, no leading call' 6 'none (not found)' --layout fsdp --no-step-sync --slow 6:1.3
row 'ddp, one rank ×1.3' 5 'none (not found)' --layout ddp --slow 5:1.3
row 'tp2, no fault' '' 'none: ranks 5 and 7' --tp 2
row 'tp2, one rank ×1.3' 9 'none: ranks 5 and 7' --tp 2 --slow 9:1.3
row 'tp4 pp2, one rank ×1.3' 9 'not measured' --tp 4 --pp 2 --slow 9:1.3

# What sysTrace took 131 s of processor time for (1024 ranks, 1.81 million rows).
rm -rf "$dir/job"
python3 tests/data/systrace.py "$dir/job" --ranks 1024 --steps 75 --slow 37:1.3
rows=$(cat "$dir/job"/*.csv | wc -l)
TIMEFORMAT='%U %S'
read -r user system < <({ time "$neutracer" analyze "$dir/job" >/dev/null 2>&1; } 2>&1)
echo
echo "1024 ranks, $rows rows: $(awk "BEGIN { print $user + $system }") s of processor time"
