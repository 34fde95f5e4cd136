#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the golden bytes of messages whose text has none yet, by protoc and so by another program
# than ours. What is committed stays as it is for ever: a new field gets a new file.
#
#   tests/golden/wire/generate.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."

for text in tests/golden/wire/*/*.txt; do
  bytes=${text%.txt}.bin
  if [ -e "$bytes" ] || ! grep -q '^agent:' "$text"; then continue; fi
  protoc --encode=neutracer.v1.Envelope -I proto proto/neutracer.proto <"$text" >"$bytes.tmp"
  mv "$bytes.tmp" "$bytes"
  echo "$bytes"
done
