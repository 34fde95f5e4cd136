#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints where actionlint is: NT_ACTIONLINT, else one that is installed, else the one that --build has
# compiled in the version that go.mod pins. Exit status 77, with the reason, where there is none.
#
#   actionlint.sh [--build]     --build: needs Go and the network, once
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
kept=$HOME/.cache/neutracer-cluster/actionlint-$(cat "$here"/go.{mod,sum} | sha256sum | cut -c1-12)/actionlint
if [ "${1:-}" = --build ] && [ ! -x "$kept" ]; then
  mkdir -p "${kept%/*}"
  (cd "$here" && go build -trimpath -ldflags '-s -w' -o "$kept.part" github.com/rhysd/actionlint/cmd/actionlint) >&2
  mv "$kept.part" "$kept"
fi
for found in "${NT_ACTIONLINT:-}" "$(command -v actionlint || :)" "$kept"; do
  if [ -x "$found" ]; then
    echo "$found"
    exit 0
  fi
done
echo 'skip: cluster: actionlint is not installed; tests/check/workflows/actionlint.sh --build makes it' >&2
exit 77
