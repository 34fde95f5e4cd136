#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An upgrade and a return: what the previous version leaves is read by this one, and what this one leaves by
# the previous one, which is built from its commit.
#
# NT_PREVIOUS: the commit or tag (the newest tag). NT_PREVIOUS_TREE: a tree in which it is built already.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make_here=(env -u MAKEFLAGS -u MAKELEVEL make -s -j"$(nproc)")
tree=${NT_PREVIOUS_TREE:-$work/tree}
if [ -z "${NT_PREVIOUS_TREE:-}" ]; then
  previous=${NT_PREVIOUS:-$(git tag --sort=-version:refname --list 'v[0-9]*' 2>/dev/null | head -n 1)}
  [ -n "$previous" ] || {
    echo "skip: previous: there is no tag; NT_PREVIOUS names a commit"
    exit 77
  }
  mkdir "$tree"
  git archive "$previous" | tar -x -C "$tree"
  "${make_here[@]}" -C "$tree" WERROR=0 all build/release/test-kafka/feeder >"$work/log" 2>&1 || {
    tail -n 20 "$work/log"
    exit 1
  }
fi
with() { # with old|new VARIABLE=VALUE... ARGUMENT...
  local built=build/release
  [ "$1" = new ] || built=$tree/build/release
  shift
  env NT_BIN="$built/bin" NT_FEEDER="$built/test-kafka/feeder" "$@"
}
with old tests/upgrade/upgrade.py make "$work/old"
with new tests/upgrade/upgrade.py check "$work/old"
with new tests/upgrade/upgrade.py make "$work/new"
with old NT_OLDER=1 tests/upgrade/upgrade.py check "$work/new"
