#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Five clients with 256 slow connections each: /healthz and /readyz still answer, and the healthy
# job's state is still served.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

setup_attack
[ "$(ulimit -n)" -ge 2000 ] || ulimit -n 2000 || skip "bpf: so many connections are not allowed here"
healthy_job
tests/attack/rest_slow.py "$port" 5 256 20 >"$work/out/slow" 2>&1 &
slow=$!
attackers+=("$slow")
wait_until 20 "the slow clients" grep -q connected "$work/out/slow" || fail "no slow clients: $(cat "$work/out/slow")"
for ((i = 0; i < 10; i++)); do
  for path in healthz readyz; do
    curl -sf -o "$work/out/$path" --max-time 5 "http://127.0.0.1:$port/$path" ||
      complain "/$path did not answer for the ${i}th time"
  done
  sleep 1
done
wait "$slow" || fail "the slow clients failed: $(cat "$work/out/slow")"
sleep 1
healthy_job_is_complete "slow clients"
all_held
