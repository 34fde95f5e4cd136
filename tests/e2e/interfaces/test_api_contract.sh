#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The REST interface keeps docs/api/openapi.yaml, as schemathesis sees it; its metrics are right for promtool and
# for the parser of OpenMetrics in prometheus_client. Certificates of clients, sessions and the audit log work with
# curl.
set -euo pipefail
# shellcheck source=tests/e2e/prometheus.sh
. tests/e2e/prometheus.sh

venv=$(tests/api/venv.sh) || {
  echo "$venv"
  exit 77
}
fetch_prometheus || {
  echo "skip: debian: the package prometheus cannot be fetched"
  exit 77
}
tests/api/contract.py "$venv"
tests/api/events.py
tests/api/pages.py
"$venv/bin/python" tests/api/metrics.py "$promtool"
tests/api/safety.py
