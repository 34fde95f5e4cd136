#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `neutracer top` and --watch on a terminal, against the real REST interface.
set -euo pipefail

exec tests/api/top.py
