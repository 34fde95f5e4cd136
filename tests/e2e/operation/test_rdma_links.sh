#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# RDMA between two ranks, through stand-ins for libibverbs and its provider: the link between them has its
# throughput at level 0 and its latency at level 1, a late receiver shows in the latency of its sender, and
# failed requests in the errors. Each ibv_post_send is a record at level 1.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
need "$sim/mpi_verbs" mpirun
export FAKE_WIRE=$work/wire
start_aggregator
start_agent node-a
start_job verbs 2 --verbs "$PWD/$sim/lib/rdma/libibverbs.so.1" --bytes 8192 --requests 4
seen 2

cli() { # cli COMMAND ARG...
  local command=$1
  shift
  "$bin/neutracer" "$command" --server "http://127.0.0.1:$port" --token-file "$work/token" "$@"
}
# link FROM TO FILTER: of the link between two ranks.
link() { links | jq -r ".items[] | select(.from.rank == $1 and .to.rank == $2) | $3"; }
is() { [ "$(link "$1" "$2" "$3")" = true ]; } # is FROM TO FILTER
# Without connections to mpirun.
links() { api "/api/v1/jobs/$job_id/links" | jq -c '.items |= map(select(.transport == "rdma"))'; }
expect_link() { # expect_link SECONDS FROM TO FILTER
  wait_until "$1" "the link $2 to $3: $4" is "$2" "$3" "$4" || fail "link $2 to $3, wanted '$4': $(links)"
}

# Both ends are joined by their numbers, and have one address, as they are on one node.
expect_link 20 0 1 '.queue_pairs == 2 and .not_visible == 0 and .device == "fake0" and .to.address == "fe80::1"'
expect_link 20 1 0 '.queue_pairs == 2 and .to.node == "node-a"'
[ "$(links | jq -c '[(.items | length), .not_visible, .over_cap]')" = '[2,[],0]' ] || fail "other links: $(links)"

# At level 0 posts are observed for 0.1 s in 10 s, too short for an exact rate. Four requests a step.
expect_link 30 0 1 '.bytes_per_second > 0'
expect_link 30 1 0 '.bytes_per_second > 0'
steps=$(awk '/^step / { n++; ms += $3 } END { print n ? ms / n : 0 }' "$job_log")
for pair in '0 1' '1 0'; do
  # shellcheck disable=SC2086 # two words
  is $pair "(.requests_per_second / (4000 / $steps) | . > 0.1 and . < 5) and (.bytes_per_second / .requests_per_second / 8192 | . > 0.999 and . < 1.001)" ||
    fail "$pair: not four requests of 8192 bytes in $steps ms: $(links)"
done
recorded() { # recorded SECONDS RANK: records of posts, in that time
  "$bin/neutracer" detail --bus "spool:$work/spool" --seconds "${1}s" --json "$job_name/$2" |
    jq -c 'select(.kind == "rdma")'
}
[ -z "$(recorded 2 0)" ] || fail "posts are recorded at level 0"

# Level 1 of rank 0: its posts are always observed, and each is a record. Completions are observed every 10 s.
cli level "$job_name/0" 1 --ttl 10m
is_recorded() { [ -n "$(recorded 1 0)" ]; }
wait_until 30 "records of posts" is_recorded || fail "no post is recorded at level 1"
# A pause between two steps is none between two records: no slice ends. The first record may be of a slice.
is_always_recorded() {
  recorded 4 0 >"$work/out/posts.json"
  jq -es 'length > 1 and (map(.entry_boot_ns) | sort | [.[1:], .[:-1]] | transpose | map(.[0] - .[1]) | max < 1e9)' \
    "$work/out/posts.json" >/dev/null
}
wait_until 60 "posts without a pause" is_always_recorded || fail "posts are not observed all the time"
posts=$(wc -l <"$work/out/posts.json")
jq -es --argjson numbers "$(links | jq '[.items[].queue_pairs] | add')" '
  all(.call == "ibv_post_send" and .bytes == 8192 and .probability == 1 and .rank == 0 and .duration_ns == null and
    (.words | length) == 3 and .words[1:] == ["0x2", "0x1"]) and (map(.words[0]) | unique | length) == 1' \
  "$work/out/posts.json" >/dev/null || fail "records of posts: $(head -n 2 "$work/out/posts.json")"
[ "$posts" -gt 300 ] || fail "$posts posts are recorded"
[ -z "$(recorded 2 1)" ] || fail "posts of rank 1 are recorded, which is at level 0"
cli level "$job_name/1" 1 --ttl 10m

expect_link 40 0 1 '.latency_seconds != null and .completions > 0 and .errors == 0'
expect_link 40 1 0 '.latency_seconds != null and .completions > 0 and .errors == 0'
healthy=$(link 0 1 .latency_seconds)

# Rank 1 is late with its receives.
fault 'loader 1 40'
expect_link 90 0 1 ".latency_most_seconds > 0.035 and .latency_seconds > 2 * $healthy"
is 0 1 '.latency_most_seconds < 0.2' || fail "the latency is not that of the receiver: $(links)"
late=$(link 0 1 .latency_seconds)
is 1 0 ".latency_seconds < $late / 2" || fail "the other direction is slow, too: $(links)"
echo "mean latency of the link 0 to 1: $healthy s, $late s with a late receiver"
fault

# Requests fail: IBV_WC_RETRY_EXC_ERR.
printf '\x0c' | dd of="$FAKE_WIRE" bs=1 conv=notrunc status=none
expect_link 60 0 1 '.errors > 0 and .error_status == 12 and .error_ratio > 0'
printf '\x00' | dd of="$FAKE_WIRE" bs=1 conv=notrunc status=none

cli links "$job_id" >"$work/out/links.txt"
[ "$(grep -Ec "^rank (0 +rank 1|1 +rank 0) " "$work/out/links.txt")" = 2 ] ||
  fail "the table: $(cat "$work/out/links.txt")"
cat "$work/out/links.txt"
end_job || fail "the job failed"
