#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Verdicts on jobs that tests/foreign plays, which shares nothing with the detector: recall and
# precision for each format. GENERATOR is engine or streams. Ends with 3 if a figure is below
# MIN_RECALL or MIN_PRECISION.
set -euo pipefail

bad=0
for format in ${FORMATS:-straggler kineto systrace}; do
  python3 -B tests/foreign/score.py --seeds "${SEEDS:-1..60}" --format "$format" --generator "${GENERATOR:-engine}" \
    --bin "${NT_BIN:-build/release/bin}/neutracer" --jobs "${JOBS:-1}" --min-recall "${MIN_RECALL:-0}" \
    --min-precision "${MIN_PRECISION:-0}" || bad=$?
done
exit "$bad"
