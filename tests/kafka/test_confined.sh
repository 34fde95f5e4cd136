#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Agent and aggregator under the system call filters of their systemd units, on a Kafka with TLS and
# passwords: a training job is seen from its first call to the REST interface. A call that a unit
# does not allow would end them.
set -euo pipefail

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh
bin=${bin%/*}/bin
[ "$(uname -m)" = x86_64 ] || skip "no expanded filters of other machines"
command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
python3 -c 'import ctypes; ctypes.CDLL("libseccomp.so.2")' 2>/dev/null || skip "no libseccomp"
setup
finish() {
  local status=$?
  set +e
  stop "$job_pid"
  for pid in "${agent_pid[@]}" $agg_pid; do stop "$pid"; done
  tests/kafka/kafka.sh down
  rm -rf "$kafka_dir"
  (exit "$status")
  cleanup
}
trap finish EXIT

confined() { # confined UNIT PROGRAM ARG...
  local unit=$1
  shift
  exec python3 tests/kafka/confined.py "deploy/systemd/neutracer-$unit.service.in" "$@"
}

# Without this the rest would prove nothing.
! (confined aggregator /bin/mount -t tmpfs none "$work/out") >"$work/log/mount.log" 2>&1 || fail "the filter lets a mount pass"

kafka --secure --version 4.1.1
let_in=(--bus "kafka://$NT_TEST_KAFKA" --bus-ca-file "$NT_KAFKA/tls/ca.pem" --bus-user neutracer
  --bus-password-file "$NT_KAFKA/tls/password" --bus-sasl-mechanism PLAIN)
"$bin/neutracer" topics create "${let_in[@]}" >"$work/log/topics.log" 2>&1 || fail "the topics are not made"

port=$(free_port)
(confined aggregator "$bin/neutracer-aggregator" "${let_in[@]}" --listen "127.0.0.1:$port" --token-file "$work/token" \
  --store "$work/store.db" --save-every 2s >"$work/log/aggregator.log" 2>&1) &
agg_pid=$!
wait_until 30 "the aggregator to be ready" ready || fail "the aggregator does not come up"
(confined agent "$bin/neutracer-agent" "${let_in[@]}" --node here --shelter "$work/shelter" \
  --metrics-file "$work/agent.prom" >"$work/log/agent.log" 2>&1) &
agent_pid[here]=$!
wait_until 30 "the agent to watch" test -s "$work/agent.prom" || fail "the agent does not come up"
start_job train 2
wait_until 40 "the job to be seen" job_is_seen 2 || fail "the job is not seen"
sleep 5 # a state is saved, pictures are drawn, and nobody ends
check_alive
end_job
stop "${agent_pid[here]}"
[ "$ended" -eq 0 ] || fail "the agent ended with $ended"
unset "agent_pid[here]"
stop "$agg_pid"
[ "$ended" -eq 0 ] || fail "the aggregator ended with $ended"
agg_pid=
echo "seen and ended in good order, under both filters"
