#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every kind of receiver of alerts, against servers that behave as the real ones do.
set -euo pipefail

exec tests/api/alerts.py
