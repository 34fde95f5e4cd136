#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The documents are readable: no sentence has more than 25 words, no cell of a table more than two
# sentences, and each link leads to a file and an anchor that exist. prose.py says what a sentence is.
set -euo pipefail

mapfile -t documents < <(tests/files.sh '^([A-Z]+|docs/[^/]+|deploy/.*/README)\.md$')
[ ${#documents[@]} -gt 0 ] || exit 0
exec python3 "$(dirname "$0")/prose.py" "${documents[@]}"
