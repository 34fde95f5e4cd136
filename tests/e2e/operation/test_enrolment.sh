#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An agent gets the key of its node from the aggregator by a token that the API server (played here) says is
# of its node, and what it had to tell before is sent signed. An agent with a token of another node gets none:
# the aggregator, which requires signatures, learns nothing of it.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
need python3
openssl rand -hex 32 >"$work/secret"
echo token-of-here >"$work/agent.token"
python3 tests/e2e/reviewer.py "$work/reviewer.port" token-of-here here >"$work/log/reviewer.log" 2>&1 &
children+=("$!")
wait_until 20 "the reviewer to listen" test -s "$work/reviewer.port" || fail "the reviewer does not come up"
start_aggregator --signatures require --node-secret-file "$work/secret" --resolve-after 10s \
  --enrol-account neutracer/neutracer-agent --kube-api "http://127.0.0.1:$(cat "$work/reviewer.port")" \
  --kube-token-file ''

counted() { # counted METRIC: of the aggregator
  api /metrics | awk -v name="neutracer_aggregator_$1" '$1 == name { print $2 }'
}

stay_apart
enrol=(--enrol-url "http://127.0.0.1:$port" --enrol-token-file "$work/agent.token")
start_agent elsewhere "${enrol[@]}"
start_job train 4
told() { grep -q "the token belongs to node 'here'" "$work/log/agent-elsewhere.log"; }
wait_until 30 "the agent to be refused" told || fail "an agent gets the key of another node"
[ "$(counted messages_total)" = 0 ] || fail "messages without a key are taken"
[ "$(counted 'records_refused_total{why="without-signature"}')" = 0 ] || fail "messages are sent that have to wait"
stop_agent elsewhere
grep -q 'bytes of messages are lost: no key was received' "$work/log/agent-elsewhere.log" || fail "a loss is silent"

start_agent here "${enrol[@]}"
seen 4
[ "$(counted 'enrol_reviews_total{result="granted"}')" -gt 0 ] || fail "no token was reviewed"
[ "$(counted gaps_total)" = 0 ] || fail "messages are missing that had to wait"
sleep 6
fault "compute 2 2"
expect 60 "a job whose agent was given a key" compute 2
[ "$(counted 'records_refused_total{why="without-signature"}')" = 0 ] || fail "messages are sent unsigned"
echo "the key of a node by a token of it alone"
