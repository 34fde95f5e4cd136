#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Levels of detail: each acts on its rank, job or node alone, survives SIGKILL of agent and aggregator, and
# ends by itself. A new incident raises its culprit and one peer.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
make_cgroup a && a=$cgroup
make_cgroup b && b=$cgroup
start_aggregator --auto-level-time 6s
start_agent node-a --cgroup "$a"
start_agent node-b --cgroup "$b"
start_job train 8 -- --cgroup "$a" --cgroup "$b"
seen 8

level() { "$bin/neutracer" level --server "http://127.0.0.1:$port" --token-file "$work/token" "$@"; }
levels() { ranks | jq -c '[.[] | .level]'; }
are_levels() { [ "$(levels)" = "[$1]" ]; }
expect_levels() { # expect_levels WHAT LEVELS
  wait_until 30 "$1" are_levels "$2" || fail "$1: levels $(levels), wanted [$2]; $(level --json)"
}

expect_levels "without a request" 0,0,0,0,0,0,0,0

# A rank, across kills of both sides.
level "$job_name/3" 1 --ttl 5m
expect_levels "rank 3 at level 1" 0,0,0,1,0,0,0,0
[ "$(level --json | jq -c '[.items[] | [.kind, .rank, .level, .ranks, .in_force, .reason, .automatic]]')" = \
  '[["rank",3,1,1,1,"operator",false]]' ] || fail "listed: $(level --json)"
level | grep -q "^$job_name/3 .* 1 .* 1/1 " || fail "the table: $(level)"
recorded() { "$bin/neutracer" detail --bus "spool:$work/spool" --seconds 2s --json "$job_name" | jq -c 'select(.kind) | .rank' | sort -u; }
[ "$(recorded)" = 3 ] || fail "records of single calls of ranks $(recorded | tr '\n' ' '), wanted 3 alone"
stop_agent node-a KILL
stop "$agg_pid" KILL
start_aggregator --auto-level-time 6s
start_agent node-a --cgroup "$a"
seen 8
expect_levels "rank 3 after the kills" 0,0,0,1,0,0,0,0
level "$job_name/3" 0
expect_levels "level 0 set" 0,0,0,0,0,0,0,0

# A node and a job; the highest one counts; each expires.
level node:node-b 2 --ttl 12s
level "$job_id" 1 --ttl 1m
expect_levels "the job and node-b" 1,1,1,1,2,2,2,2
expect_levels "the job, after node-b expired" 1,1,1,1,1,1,1,1
level "$job_name" 0
expect_levels "the job's ended" 0,0,0,0,0,0,0,0

# What is wrong is refused by name.
refused() { # refused EXIT TEXT ARG...
  local code=0 wanted=$1 text=$2 output
  shift 2
  output=$(level "$@" 2>&1) || code=$?
  [ "$code" = "$wanted" ] || fail "level $*: exit $code, wanted $wanted: $output"
  grep -qF -- "$text" <<<"$output" || fail "level $*: no '$text' in: $output"
}
refused 8 "no rank 9" "$job_name/9" 1
refused 8 "no running job is named 'other'" other 1
refused 8 "node 'node-c'" node:node-c 1
refused 2 "'4' is no level" "$job_name" 4
refused 2 "TARGET needs a LEVEL" "$job_name"
refused 2 "ttl" "$job_name" 1 --ttl 0

# An incident raises its culprit and one other rank, for a while.
fault 'compute 6 1.8'
expect 60 "rank 6" compute 6
is_raised() { [ "$(level --json | jq -c '[.items[] | select(.automatic) | .rank == 6] | sort')" = '[false,true]' ]; }
wait_until 20 "the culprit and a peer to be raised" is_raised || fail "raised: $(level --json)"
id=$(open_incidents | jq -r '.[0].id')
[ "$(level --json | jq -r '[.items[].reason] | unique | .[]')" = "$id" ] || fail "not for $id: $(level --json)"
raised_and_back() { [ "$(ranks | jq '[.[] | .level] | add')" -eq "$1" ]; }
wait_until 20 "two ranks at level 1" raised_and_back 2 || fail "levels $(levels)"
expect_levels "the end of the levels" 0,0,0,0,0,0,0,0
end_job || fail "the job failed"
