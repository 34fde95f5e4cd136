#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The REST interface keeps docs/api/openapi.yaml, as schemathesis sees it; its metrics please promtool.
# Certificates of clients, sessions and the audit log work with curl.
set -euo pipefail

venv=$(tests/api/venv.sh) || {
  echo "$venv"
  exit 77
}
tests/api/contract.py "$venv"
tests/api/events.py
tests/api/pages.py
tests/api/metrics.py
tests/api/safety.py
