#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# venv.sh [REQUIREMENTS]: prints the directory of a Python environment with these packages, by default
# those of requirements.txt, made once and kept in the user's cache. Status 77 and the reason where it
# cannot be made.
set -euo pipefail

requirements=${1:-tests/api/requirements.txt}
sum=$(cat "$requirements" <(python3 --version) | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/neutracer
venv=$cache/api-$sum

if [ ! -e "$venv/complete" ]; then
  mkdir -p "$cache"
  # Two that start at once must not share a half-made one.
  exec 9>"$cache/lock"
  flock 9
fi
if [ ! -e "$venv/complete" ]; then
  rm -rf "$venv"
  if ! python3 -m venv "$venv" >"$cache/log" 2>&1 ||
    ! timeout 240 "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 \
      --requirement "$requirements" >>"$cache/log" 2>&1; then
    echo "skip: pip: $(tail -n 1 "$cache/log")"
    exit 77
  fi
  : >"$venv/complete"
fi
echo "$venv"
