#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# k-sigma judges recorded series as its definition says.
set -euo pipefail

exec /usr/bin/python3 tests/detectors/compare.py ksigma build/release/detectors/detector_output tests/data/anomaly/*.csv.gz
