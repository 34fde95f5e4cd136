#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# More idle processes of one user than the agent has places for map a library. A job of another user
# that starts later is seen whole; the log says once who is left out, and so do /readyz, the metrics and
# `neutracer jobs`. When the processes are gone, nothing is said any more.
#
#   NT_BUS   the bus (a spool)
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

crowd=${NT_CROWD:-1300} # the agent watches 1024

setup
need "$sim/idle" setpriv
chmod 711 "$work"
stay_apart
front=$(free_port)
bus=${NT_BUS:-spool:$work/spool}
start_aggregator --bus "$bus" --resolve-after 10s
start_agent here --bus "$bus" --shelter "$work/shelter" --listen "127.0.0.1:$front"

cp "$sim/lib/libnccl.so.2" "$work/libnccl.so.2"
chmod 755 "$work/libnccl.so.2"
install -m 755 "$sim/idle" "$work/idle"
setpriv --reuid nobody --regid nogroup --clear-groups "$work/idle" "$crowd" "$work/libnccl.so.2" >"$work/out/idle" &
idle_pid=$!
children+=("$idle_pid")
crowd_is_there() { grep -q ready "$work/out/idle"; }
wait_until 60 "the idle processes to map their library" crowd_is_there || fail "the idle processes do not come up"

metric() { # metric NAME[{LABELS}]
  awk -v name="$1" '$1 == name { print $2 }' "$work/agent-here.prom"
}
left_out() { [ "$(metric 'neutracer_agent_left_out{what="processes"}')" -gt 0 ]; }
nobody=$(id -u nobody)
if [ -z "${NT_ONLY_JOB:-}" ]; then
  wait_until 30 "the cap to be reached" left_out || fail "nobody is left out"
fi

start_job train 8
seen 8
have_windows() { [ "$(ranks | jq '[.[] | select(.own_seconds != null)] | length')" -eq 8 ]; }
wait_until 20 "the windows of all ranks" have_windows ||
  fail "not all ranks have windows: $(ranks)"
rank=$(draw 8)
fault "compute $rank 1.8"
expect 60 "beside $crowd idle processes" compute "$rank"
heal

# ---- what is said of it ----------------------------------------------------------------------------

said=$(grep -c "the cap 'processes' is reached" "$work/log/agent-here.log") || :
[ "$said" -eq 1 ] || fail "the cap is logged $said times"
grep -q "the cap 'processes' is reached: .* of user $nobody (cap 1024)" "$work/log/agent-here.log" ||
  fail "the log does not say who is left out"
ready=$(curl -sf "http://127.0.0.1:$front/readyz") || fail "the agent is not ready: $(curl -s "http://127.0.0.1:$front/readyz")"
jq -e --arg user "user $nobody" '.status == "ok" and
  ([.checks[] | select(.name == "cap-processes" and (.detail | contains($user)))] | length) == 1' <<<"$ready" >/dev/null ||
  fail "/readyz does not say who is left out: $ready"
node_says() {
  api /api/v1/nodes | jq -e --arg user "user $nobody" \
    '.items[] | select(.node == "here") | .limits[] | select(.what == "processes" and .owner == $user and .left_out > 0 and .cap == 1024)' >/dev/null
}
wait_until 40 "the node to say who is left out" node_says || fail "$(api /api/v1/nodes)"
"$bin/neutracer" jobs --server "http://127.0.0.1:$port" --token-file "$work/token" >"$work/out/jobs"
grep -q "^here: .* processes left out.* user $nobody (cap 1024)" "$work/out/jobs" ||
  fail "neutracer jobs does not say who is left out: $(cat "$work/out/jobs")"
echo "said: $(grep '^here: ' "$work/out/jobs")"
resident=$(metric neutracer_agent_resident_bytes)
[ "${resident%.*}" -lt 60000000 ] || fail "the agent has $resident bytes"

# ---- and when it is over ---------------------------------------------------------------------------

stop "$idle_pid"
nobody_left_out() { ! left_out; }
wait_until 30 "nobody to be left out" nobody_left_out || fail "still: $(metric 'neutracer_agent_left_out{what="processes"}')"
silent() { ! node_says; }
wait_until 40 "the node to fall silent" silent || fail "$(api /api/v1/nodes)"
[ "$(ranks | jq length)" -eq 8 ] || fail "the job has lost ranks: $(ranks)"
end_job || fail "the job failed"
echo "$crowd idle processes hide nobody; agent: ${resident%.*} bytes"
