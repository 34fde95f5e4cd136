#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The direct decoder of messages beside protobuf-c, on the golden window messages: bench/decode.c.
#
#   bench/decode.sh [FILE...]
set -euo pipefail

files=("$@")
[ ${#files[@]} -gt 0 ] || files=(tests/golden/wire/window/*.bin)
build/bench/decode "${files[@]}"
