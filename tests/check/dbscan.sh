#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# DBSCAN's labels, in one and several dimensions, are those of scikit-learn.
set -euo pipefail

exec /usr/bin/python3 tests/detectors/compare.py dbscan build/release/detectors/detector_output
