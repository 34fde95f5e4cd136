#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The score of a node: the one real agent beside nine that are replayed from its own vectors, all with one job. Under
# real load (processes that wait for a processor, a disk that is flushed, memory that is reclaimed) only the real node
# alarms within three minutes, and names what the load does. Its state survives kill -9. It takes nine minutes.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

need "$sim/node_replay"
setup
pause=1
score() { api "/api/v1/nodes/$1/scores" | jq -c '.anomaly'; }
state_is() { [ "$(score "$1" | jq -r '.state')" = "$2" ]; }
quiet_nodes() { api "/api/v1/nodes?limit=100" | jq '[.items[].anomaly.state | select(. == "quiet")] | length'; }
ten_are_quiet() { [ "$(quiet_nodes)" = 10 ]; }
node_incidents() { api "/api/v1/incidents?class=node&state=firing" | jq -c '[.items[].culprits[].node]'; }
has_row_after() { [ "$(score here | jq -r '.at | fromdateiso8601')" -ge "$1" ]; }

# The agent's own vectors, in which nothing happens but a job.
start_job train 4
(hidden "$bin/neutracer-agent" --bus "spool:$work/recorded" --node here >"$work/log/agent-recorded.log" 2>&1) &
agent_pid[recorded]=$!
sleep "${NT_RECORD_SECONDS:-100}"
stop_agent recorded

# Two days and an hour of ten nodes, and nine of them from now on.
"$sim/node_replay" "spool:$work/recorded" "spool:$work/spool" here 10 2940 >"$work/out/replay" 2>"$work/log/replay.log" &
children+=($!)
wait_until 120 "the past of ten nodes" grep -q ready "$work/out/replay" || fail "the past is not written"
start_aggregator --rewind 0 --save-every 5s
wait_until 120 "ten nodes to be learned" ten_are_quiet || fail "not learned: $(api /api/v1/nodes?limit=100 | jq -c '.items[].anomaly')"
start_agent here
seen 4
begin=$(date +%s)
wait_until 300 "three minutes of the real agent" has_row_after $((begin + 180)) || fail "no rows: $(score here)"
# Other tests of the machine may have ended or begun since the recording.
wait_until 120 "the node to be quiet" state_is here quiet || fail "it alarms without a reason: $(score here)"
echo "before: $(score here | jq -c '[.score, .threshold, .peers]')"

kill -KILL "$agg_pid"
wait "$agg_pid" || :
start_aggregator --save-every 5s
wait_until 60 "the scores to go on" ten_are_quiet || fail "learned anew after kill -9: $(api /api/v1/nodes?limit=100 | jq -c '.items[].anomaly')"
echo "after kill -9: ten nodes are quiet"

# 24 processes for the processors, a disk that flushes, processes that come and go.
for ((i = 0; i < 24; i++)); do
  bash -c 'while :; do :; done' &
  children+=($!)
done
dd if=/dev/zero of="$work/flushed" bs=64k count=1000000 oflag=dsync status=none &
children+=($!)
bash -c 'while :; do /bin/true; done' &
children+=($!)
begin=$(now_ms)
wait_until 200 "an alarm" state_is here alarm || fail "no alarm: $(score here)"
echo "alarm after $(($(now_ms) - begin)) ms: $(score here | jq -c '[.score, .threshold, [.metrics[] | [.metric, .value, .peers]]]')"
[ "$(node_incidents)" = '["here"]' ] || fail "not only the loaded node: $(node_incidents)"
score here | jq -e '[.metrics[:5][].metric] | any(test("cpu|processes|pressure|context|disk|threads|io_"))' >/dev/null ||
  fail "the wrong metrics: $(score here)"
api "/api/v1/incidents?class=node" | jq -r '.items[].summary'
"$bin/neutracer" nodes --server "http://127.0.0.1:$port" --token-file "$work/token"
