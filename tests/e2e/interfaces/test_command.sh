#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The command a person types, against the real REST interface.
set -euo pipefail

exec tests/api/command.py
