#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Neither kill -9 nor a receiver in trouble loses a message or breaks the order of an incident's.
set -euo pipefail

exec tests/api/crash.py
