#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints the files of the project, one per line: those tracked by git or about to be added, or in an
# unpacked tarball all but build outputs. Arguments are extended regular expressions to match.
set -euo pipefail

all() {
  if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -co --exclude-standard
  else
    find . -path ./build -prune -o -type f -print | sed 's|^\./||'
  fi
}

pattern=$(IFS='|'; echo "$*")
all | sort -u | { grep -E "${pattern:-.}" || :; } | while IFS= read -r file; do
  [ ! -f "$file" ] || printf '%s\n' "$file"
done
