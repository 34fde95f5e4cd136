#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The statements of docs/clickhouse.md work in ClickHouse, on the golden messages.
set -euo pipefail

venv=$(tests/api/venv.sh tests/long/clickhouse.txt) || {
  echo "$venv"
  exit 77
}
"$venv/bin/python" tests/long/clickhouse.py
