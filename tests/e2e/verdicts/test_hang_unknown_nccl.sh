#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job that ran before the agent, over a release of NCCL whose communicators nobody can read: with --nccl-ras
# the agent gets them from NCCL's RAS, in another network namespace, and a rank that hangs is named.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
need unshare
programs=$PWD/$bin
[[ $bin != /* ]] || programs=$bin

# The agent has a network of its own, as in a pod.
mkdir "$work/bin"
ln -s "$programs"/* "$work/bin"
rm "$work/bin/neutracer-agent"
printf '#!/bin/sh\nexec unshare --net "%s/neutracer-agent" "$@"\n' "$programs" >"$work/bin/neutracer-agent"
chmod +x "$work/bin/neutracer-agent"

above() { # above METRIC LEAST
  [ "$(awk -v name="neutracer_agent_$1" '$1 == name { print $2 }' "$work/agent-here.prom" 2>/dev/null || :)" -ge "${2:-1}" ] 2>/dev/null
}

start_aggregator --resolve-after 10s
bin=$work/bin
export SIM_NCCL_RAS=1 SIM_NCCL_SHIFT=64
NCCL_RAS_ADDR=localhost:$(free_port)
export NCCL_RAS_ADDR
start_job train 8
start_agent here
seen 8
wait_until 60 "the communicators" above communicators_unresolved_total 8 || fail "they can be read"
! above 'nccl_ras_requests_total{result="answered"}' || fail "RAS is on without the option"
stop_agent here

start_agent here --nccl-ras
wait_until 60 "the status" above 'nccl_ras_requests_total{result="answered"}' || fail "there is no status"
wait_until 60 "the communicators" above communicators_resolved_total 16 || fail "they are still unknown"
above nccl_layouts_stated_total || fail "no layout was found"
above nccl_ras_ranks 16 || fail "the status has not all ranks"
seen 8
quiet 6
rank=$(draw 8)
fault "hang $rank"
expect 60 "a rank that hangs, in communicators that RAS states" hang "$rank"
heal
stop_agent here
end_job || fail "the job failed"

# refused RESULT: counted so, and the agent goes on.
refused() {
  start_job train 2
  start_agent here --nccl-ras
  wait_until 60 "the request" above "nccl_ras_requests_total{result=\"$1\"}" || fail "it is not counted as $1"
  stop_agent here
  end_job || fail "$1: the job failed"
  echo "a job without a status: $1"
}
NCCL_RAS_ENABLE=0 refused off
SIM_NCCL_RAS='' NCCL_RAS_ADDR=localhost:22 refused bad-port
SIM_NCCL_RAS=text refused unsupported
unset SIM_NCCL_RAS
refused unreachable
