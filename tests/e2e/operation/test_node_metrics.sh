#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The node vector of this machine: what each node has, and counters that grow with what is done. An agent
# that starts anew continues the counters.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
need python3
series() { tests/e2e/node_series.py "$1" "$work/spool" "${@:2}"; }
grown() { # grown METRIC LEAST: by so much since note()
  local now
  now=$(series last "$1") && [ -n "$now" ] &&
    awk -v now="$now" -v before="${before[$1]}" -v least="$2" 'BEGIN { exit !(now - before >= least) }'
}
declare -A before=()
note() { # note METRIC...
  local name
  for name; do
    before[$name]=$(series last "$name")
    [ -n "${before[$name]}" ] || fail "$name is not sent"
  done
}

start_agent here
sent() { [ "$(series last cpu_busy | wc -l)" -gt 0 ]; } # needs two readings
wait_until 30 "two node vectors" sent || fail "no node vector is sent"
series names >"$work/names"
tests/node_metrics.sh | awk -F'\t' '$4 == "scored" { print $1 }' | grep -xFf - "$work/names" >"$work/scored" || :
[ "$(wc -l <"$work/scored")" -ge 35 ] || fail "$(wc -l <"$work/scored") scored metrics are sent: $(tr '\n' ' ' <"$work/scored")"
series has "$(cat /proc/sys/kernel/random/boot_id)" || fail "the boot id is not sent"
series has "$(uname -r)" || fail "the kernel is not sent"

# Each load is at least so much; other programs add to it.
note processes_started disk_written_bytes tcp_resets cpu_pressure_some_seconds page_faults_major
for ((i = 0; i < 300; i++)); do (:); done
dd if=/dev/zero of="$work/load" bs=1M count=48 conv=fsync 2>/dev/null
python3 - <<'P'
import socket, struct
with socket.create_server(('127.0.0.1', 0)) as server:
    for _ in range(40):
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        client.close()  # a reset
        peer.close()
P
wait_until 30 "new processes" grown processes_started 300 || fail "300 processes are not in processes_started"
wait_until 30 "reset connections" grown tcp_resets 40 || fail "40 resets are not in tcp_resets"
if [ "$(stat -f -c %T "$work")" != tmpfs ]; then
  wait_until 30 "the written file" grown disk_written_bytes $((48 << 20)) || fail "48 MiB are not in disk_written_bytes"
fi

stop_agent here
note processes_started disk_written_bytes net_received_bytes disk_operations
start_agent here
wait_until 30 "a node vector of the next agent" grown processes_started 1 || fail "the next agent sends no node vector"
for name in disk_written_bytes net_received_bytes disk_operations; do
  grown "$name" 0 || fail "$name begins anew with the agent"
done
stop_agent here
echo "$(wc -l <"$work/names") metrics, $(wc -l <"$work/scored") of them scored; counters grow with the load and outlive the agent"
