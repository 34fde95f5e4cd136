# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The ports of one test's brokers. Sourced from the root of the tree.

# Sets NT_KAFKA_PORT to the first of a hundred ports that nobody uses. They are this shell's until it
# and what it started have ended, as a broker takes seconds to open them. They are above the ports of
# tests/e2e/lib.sh and below the kernel's range of ephemeral ports.
claim_ports() {
  local base node port
  for _ in {1..100}; do
    base=$((25000 + SRANDOM % 70 * 100))
    for node in 0 10 20; do
      for port in 0 1 2 3 4; do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$((base + node + port))") 2>/dev/null || continue 3
      done
    done
    exec {ports_claim}>"/tmp/neutracer-ports-$base"
    if flock --nonblock "$ports_claim"; then
      export NT_KAFKA_PORT=$base
      return
    fi
    exec {ports_claim}>&-
  done
  echo "no hundred ports are free" >&2
  return 1
}
