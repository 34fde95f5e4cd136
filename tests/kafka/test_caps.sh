#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Caps that an agent reaches are shown by an aggregator on Kafka, as on a spool.
set -euo pipefail

# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh

# shellcheck disable=SC2119 # no options
kafka
url=kafka://$NT_TEST_KAFKA
"${bin%/*}/bin/neutracer" topics create --bus "$url" --partitions 3 >/dev/null
NT_BUS=$url NT_BIN=${bin%/*}/bin tests/e2e/operation/test_shares.sh
