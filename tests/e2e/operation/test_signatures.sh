#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An aggregator that requires signatures believes the agent that has the key of its node, and none other:
# what an agent without a key writes to the same bus about the same job is refused and counted, and
# becomes neither a job nor an incident. A key of another node is no key.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
openssl rand -hex 32 >"$work/secret"
key_of() { "$bin/neutracer" node-key --node-secret-file "$work/secret" "$1"; }
key_of here >"$work/here.key"
key_of other >"$work/other.key"
start_aggregator --signatures require --node-secret-file "$work/secret" --resolve-after 10s

counted() { # counted METRIC: of the aggregator
  api /metrics | awk -v name="neutracer_aggregator_$1" '$1 == name { print $2 }'
}

status=0
"$bin/neutracer-agent" --bus "spool:$work/spool" --node here --message-key-file "$work/other.key" \
  >"$work/log/refused.log" 2>&1 || status=$?
grep -q "the key of node 'other', not of 'here'" "$work/log/refused.log" || fail "an agent takes another node's key"
[ "$status" -ne 0 ] || fail "an agent takes another node's key"

stay_apart
start_agent here
start_job train 4
refused() { [ "$(counted 'records_refused_total{why="without-signature"}')" -gt 8 ]; }
wait_until 30 "unsigned messages to be refused" refused || fail "nothing is refused: $(api /metrics | grep refused)"
[ "$(api /api/v1/jobs | jq '.items | length')" = 0 ] || fail "a job of unsigned messages: $(api /api/v1/jobs)"
stop_agent here

start_agent here --message-key-file "$work/here.key"
seen 4
[ "$(counted messages_verified_total)" -gt 0 ] || fail "no message was verified"
[ "$(counted 'records_refused_total{why="wrong-signature"}')" = 0 ] || fail "a signature is wrong"
before=$(counted 'records_refused_total{why="without-signature"}')
sleep 6
fault "compute 2 2"
expect 60 "a job whose messages are signed" compute 2
[ "$(counted 'records_refused_total{why="without-signature"}')" = "$before" ] || fail "the agent sends unsigned messages"
echo "unsigned: $before refused, no job; signed: rank 2 named"
