# shellcheck shell=bash disable=SC2034 # what is set here is used where it is sourced
# SPDX-License-Identifier: GPL-3.0-or-later
# What the tests on a real Kafka begin with. Sourced from the root of the tree.

skip() {
  echo "skip: kafka: $1"
  exit 77
}

# Said loudly, because a machine of continuous integration must not skip: NT_REQUIRE=kafka.
command -v java >/dev/null || skip "no Java: 'make deps' installs it"
command -v openssl >/dev/null || skip "no openssl"
if ! command -v mvn >/dev/null && [ ! -d "${NT_KAFKA_JARS:-$HOME/.cache/neutracer-kafka}" ]; then
  skip "no Maven to fetch Kafka with: 'make deps' installs it"
fi

bin=${NT_KAFKA_BIN:-build/release/test-kafka}
kafka_dir=$(mktemp -d)

# shellcheck source=tests/kafka/ports.sh
. tests/kafka/ports.sh
[ -n "${NT_KAFKA_PORT:-}" ] || claim_ports || skip "no ports"

export NT_KAFKA=$kafka_dir/state NT_KAFKA_PORT
export NT_TEST_CONTROL=tests/kafka/kafka.sh
trap 'tests/kafka/kafka.sh down; rm -rf "$kafka_dir"' EXIT
trap 'exit 130' INT TERM HUP

# kafka OPTION...: a fresh one, and where it is.
kafka() {
  tests/kafka/kafka.sh down
  NT_TEST_KAFKA=$(tests/kafka/kafka.sh up "$@")
  export NT_TEST_KAFKA
  echo "# Kafka $*: $NT_TEST_KAFKA"
}

status=0
# try PROGRAM...: all are run, whatever one says.
try() {
  "$@" || status=1
}
