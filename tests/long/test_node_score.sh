#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The score of a node: the one real agent beside nine that are replayed from its own vectors, all with one job. Under
# real load only the real node alarms within three minutes, and names what the load does. Its state survives kill -9.
# Each load meets a node that was learned alike, under a name of its own: an alarm lasts longer than the test. With all
# loads it takes sixteen minutes.
#
#   disk     processes that wait for a processor, a disk that is flushed
#   memory   a control group whose processes touch more than it may have
#   loss     TCP over a link that drops one in twenty packets
#
#   LOADS='disk memory loss' tests/long/test_node_score.sh
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/real/host_faults.sh
. tests/real/host_faults.sh

read -ra loads <<<"${LOADS:-disk memory loss}"
declare -A names_of=([disk]='cpu|processes|pressure|context|disk|threads|io_' [memory]='memory_pressure|page_faults_major|reclaim'
  [loss]='tcp_retransmits')
need "$sim/node_replay"
setup
pause=1
score() { api "/api/v1/nodes/$1/scores" | jq -c '.anomaly'; }
state_is() { [ "$(score "$1" | jq -r '.state')" = "$2" ]; }
quiet_nodes() { api "/api/v1/nodes?limit=100" | jq '[.items[].anomaly.state | select(. == "quiet")] | length'; }
all_are_quiet() { [ "$(quiet_nodes)" = $((9 + ${#loads[@]})) ]; }
# The nodes of later loads are silent meanwhile.
ten_are_quiet() { [ "$(quiet_nodes)" -ge 10 ]; }
# Nodes of the loads before are silent, and their alarms last for 15 minutes.
node_incidents() { api "/api/v1/incidents?class=node&state=firing" | jq -c --args '[.items[].culprits[].node] - $ARGS.positional' "${loaded[@]}"; }
has_row_after() { [ "$(score "$1" | jq -r '.at | fromdateiso8601')" -ge "$2" ]; }

# The agent's own vectors, in which nothing happens but a job.
start_job train 4
(hidden "$bin/neutracer-agent" --bus "spool:$work/recorded" --node here >"$work/log/agent-recorded.log" 2>&1) &
agent_pid[recorded]=$!
sleep "${NT_RECORD_SECONDS:-100}"
stop_agent recorded

load_disk() {
  for ((i = 0; i < 24; i++)); do start_load bash -c 'while :; do :; done'; done
  start_load dd if=/dev/zero of="$work/flushed" bs=64k count=1000000 oflag=dsync status=none
  start_load bash -c 'while :; do /bin/true; done'
}

# Pages of a file can be reclaimed without swap. They are charged to whoever reads them first.
load_memory() {
  dd if=/dev/zero of="$work/touched" bs=1M count=192 oflag=direct status=none
  host_group memory
  host_setting memory.limit_in_bytes memory.high 33554432
  for ((i = 0; i < 2; i++)); do
    # shellcheck disable=SC2016 # for the inner shell
    start_load bash -c 'echo $$ >"$0/cgroup.procs" && exec python3 -c "
import mmap, sys
with open(sys.argv[1], \"rb\") as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
while True:
    for at in range(0, len(data), mmap.PAGESIZE):
        data[at]
" "$1"' "$cgroup" "$work/touched"
  done
}

# This machine sends: so its own counters tell.
load_loss() {
  local served
  served=$(free_port)
  host_network 1
  host_lose 0
  mkdir "$work/served"
  truncate -s 64G "$work/served/zeros"
  start_load python3 -m http.server --bind 10.77.0.1 --directory "$work/served" "$served"
  start_load ip netns exec "$NT_NETNS-0" curl -s --retry 30 --retry-connrefused --limit-rate 4M -o /dev/null "http://10.77.0.1:$served/zeros"
}

load_pids=()
start_load() {
  "$@" >>"$work/log/load.log" 2>&1 &
  load_pids+=($!)
  children+=($!)
}

end_load() {
  local pid
  for pid in "${load_pids[@]}"; do stop "$pid" KILL; done
  load_pids=()
  host_mend
  host_unnetwork
}

# The library's own, after what is left of a load.
load_cleanup() {
  local status=$?
  set +e
  end_load
  (exit "$status")
  cleanup
}
trap load_cleanup EXIT

# meet LOAD NODE: the node alarms, and no other.
meet() {
  local begin
  begin=$(now_ms)
  "load_$1"
  wait_until 200 "an alarm" state_is "$2" alarm || fail "$1: no alarm: $(score "$2")"
  echo "$1: alarm after $(($(now_ms) - begin)) ms: $(score "$2" | jq -c '[.score, .threshold, [.metrics[] | [.metric, .value, .peers]]]')"
  [ "$(node_incidents)" = "[\"$2\"]" ] || fail "$1: not only the loaded node: $(node_incidents)"
  score "$2" | jq -e --arg names "${names_of[$1]}" '[.metrics[].metric] | any(test($names))' >/dev/null ||
    fail "$1: the wrong metrics: $(score "$2")"
  end_load
  loaded+=("$2")
}

has_peers_after() { has_row_after "$1" "$2" && [ "$(score "$1" | jq '.peers')" -ge 9 ]; }

# Two days and an hour of all nodes, and nine of them from now on.
nodes=(here) loaded=()
for ((i = 1; i < ${#loads[@]}; i++)); do nodes+=("here-$i"); done
"$sim/node_replay" "spool:$work/recorded" "spool:$work/spool" "$(IFS=,; echo "${nodes[*]}")" $((9 + ${#loads[@]})) 2940 \
  >"$work/out/replay" 2>"$work/log/replay.log" &
children+=($!)
wait_until 120 "the past of the nodes" grep -q ready "$work/out/replay" || fail "the past is not written"
start_aggregator --rewind 0 --save-every 5s
wait_until 120 "the nodes to be learned" all_are_quiet || fail "not learned: $(api /api/v1/nodes?limit=100 | jq -c '.items[].anomaly')"
start_agent here
seen 4
wait_until 300 "three minutes of the real agent" has_row_after here $(($(date +%s) + 180)) || fail "no rows: $(score here)"
# Other tests of the machine may have ended or begun since the recording.
wait_until 120 "the node to be quiet" state_is here quiet || fail "it alarms without a reason: $(score here)"
echo "before: $(score here | jq -c '[.score, .threshold, .peers]')"

kill -KILL "$agg_pid"
wait "$agg_pid" || :
start_aggregator --save-every 5s
wait_until 60 "the scores to go on" ten_are_quiet || fail "learned anew after kill -9: $(api /api/v1/nodes?limit=100 | jq -c '.items[].anomaly')"
echo "after kill -9: ten nodes are quiet"

for ((k = 0; k < ${#loads[@]}; k++)); do
  lacking=$(host_lacks here "${loads[k]}")
  if [ -n "$lacking" ]; then echo "${loads[k]}: left out: $lacking"; continue; fi
  if [ -z "${agent_pid[${nodes[k]}]:-}" ]; then
    for name in "${!agent_pid[@]}"; do stop_agent "$name"; done
    start_agent "${nodes[k]}"
    wait_until 240 "rows of ${nodes[k]}" has_peers_after "${nodes[k]}" $(($(date +%s) + 120)) || fail "no rows: $(score "${nodes[k]}")"
    wait_until 120 "the node to be quiet" state_is "${nodes[k]}" quiet || fail "it alarms without a reason: $(score "${nodes[k]}")"
  fi
  meet "${loads[k]}" "${nodes[k]}"
done
api "/api/v1/incidents?class=node" | jq -r '.items[].summary'
"$bin/neutracer" nodes --server "http://127.0.0.1:$port" --token-file "$work/token"
