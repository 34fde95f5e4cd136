#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# In the guest of tests/vm/test_rdma_links.sh: two MPI ranks that use soft-RoCE through the real libibverbs, agent,
# spool and aggregator. The link between them has throughput, latency and addresses, and each post is a record.
#
#   rdma_ranks.sh DIR     where the spool is copied to; the ranks are in a pod's cgroup
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
# shellcheck disable=SC2034 # of the library
pause=1 starting=120
# Its components for verbs would use the device, too.
export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx
container=pod12345678-90ab-cdef-1234-567890abcdef/$(printf 'c0ffee%058d' 1)
stay_apart
mkdir -p "$apart/$container"
start_aggregator
start_agent node-a --level 1
# What is emulated is slow: the library is loaded, then time for the probes.
echo $$ >"$apart/$container/cgroup.procs"
export POD_NAME=llm-0 POD_NAMESPACE=train
start_job verbs 2 --settle-ms 20000 --compute-ms 30 --requests 1 --bytes 4096
seen 2
links() { api "/api/v1/jobs/$job_id/links"; }
is() { [ "$(links | jq -r ".items[] | select(.transport == \"rdma\" and .from.rank == $1 and .to.rank == $2) | $3")" = true ]; }
expect_link() { # expect_link SECONDS FROM TO FILTER
  wait_until "$1" "the link $2 to $3: $4" is "$2" "$3" "$4" || fail "link $2 to $3, wanted '$4': $(links)"
}
for pair in '0 1' '1 0'; do
  # shellcheck disable=SC2086 # two words
  expect_link 150 $pair '.device == "rxe0" and .queue_pairs == 2 and .from.address == .to.address and .from.address != null
    and .bytes_per_second > 4096 and .latency_seconds != null and .errors == 0'
done
links | jq -c '.items[] | [.from.rank, .to.rank, .bytes_per_second, .latency_seconds, .latency_most_seconds]'
"$bin/neutracer" links --server "http://127.0.0.1:$port" --token-file "$work/token" "$job_id"
"$bin/neutracer" detail --bus "spool:$work/spool" --seconds 5s --json "$job_name/0" | jq -c 'select(.kind == "rdma")' >"$work/out/posts.json"
[ -s "$work/out/posts.json" ] || fail "no post is recorded"
head -n 1 "$work/out/posts.json"
end_job || fail "the job failed"
stop_agent node-a
cp -r "$work/spool" "$1/"
