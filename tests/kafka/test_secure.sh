#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# TLS, passwords, certificates and rights. With Kafka 4 the password is shown through TLS: librdkafka
# before 2.6.1 cannot do SCRAM with it.
set -euo pipefail
. tests/kafka/lib.sh

secure() {
  kafka --secure "$@"
  export NT_TEST_TLS=$NT_KAFKA/tls
  export NT_TEST_MTLS=127.0.0.1:$((NT_KAFKA_PORT + 3)) NT_TEST_EXPIRED=127.0.0.1:$((NT_KAFKA_PORT + 4))
  try "$bin/secure"
}

secure --version 3.9.1
NT_TEST_PLAIN=1 secure --version 4.1.1
exit $status
