#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# PyTorch 2.15 itself on its NCCL backend, over the stand-in libraries: calls and bytes per rank and
# operation equal what the script counted, torchrun is no rank, and a slow rank is named.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

[ "$(uname -m)" = x86_64 ] || skip "torch: the pinned wheels are for x86_64"
/usr/bin/python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' ||
  skip "torch: the pinned wheels are for Python 3.11"
setup
ranks=4
limit=150 # seconds that a rank may live
directories=$(tests/long/torch.sh "$sim/lib") || fail "PyTorch cannot be installed"
{ read -r site; read -r dummies; } <<<"$directories"

# In the cache directory nobody else writes; our own modules lie beside the script.
torchrun() { # torchrun OPTION...: options of the script
  job_log=$work/log/job-$(($(find "$work/log" -name 'job-*' | wc -l) + 1)).log
  rm -rf "$control/truth"
  mkdir "$control/truth"
  env PYTHONPATH="$site" PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore OMP_NUM_THREADS=1 \
    LD_LIBRARY_PATH="$PWD/$sim/lib:$dummies" \
    /usr/bin/python3 -m torch.distributed.run --nproc-per-node "$ranks" --master-port "$(free_port)" \
    tests/sim/ddp_nccl.py --faults "$control/faults" --out "$control/truth" --limit "$limit" "$@" \
    >"$job_log" 2>&1 &
  job_pid=$!
}

ranks_have_ended() {
  api "/api/v1/jobs/$job_id/ranks" >"$work/ranks.json" &&
    [ "$(jq '[.items[] | select(.state == "finished" or .state == "ended")] | length' "$work/ranks.json")" -eq "$ranks" ]
}

start_aggregator --resolve-after 10s
start_agent here
width=$((128 + $(draw 256))) # at most a megabyte: one bucket
torchrun --seconds 3600 --width "$width"
launcher=$job_pid
wait_until 60 "the job to step" job_steps || fail "the job does not run"
seen "$ranks"
quiet 6

rank=$(draw "$ranks")
fault "compute $rank 1.8"
expect 25 "a slow device of PyTorch's job" compute "$rank"
heal
rank=$(draw "$ranks")
fault "loader $rank 40"
expect 25 "late data of PyTorch's job" host "$rank"
heal

end_job || fail "the job failed"
wait_until 20 "the ranks to end" ranks_have_ended || fail "$(cat "$work/ranks.json")"
steps=$(jq '.steps' "$control/truth/rank-0.json")
[ "$steps" -ge 20 ] || fail "only $steps steps"
echo "$steps steps: $(tests/e2e/counts.py "$work/ranks.json" "$control/truth" "$launcher")" || fail "the counts differ"
