#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `make check` names the packages that are missing before anything is compiled.
set -euo pipefail

command -v dpkg-query >/dev/null || {
  echo "skip: debian: packages are looked up with dpkg-query"
  exit 77
}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0

fail() {
  echo "$1"
  bad=1
}

# A tree that was never built, and a machine on which all is installed but one package.
tests/files.sh | grep -v '^tests/\(fuzz/corpus\|data\|golden\)/' | tar -c --files-from - | tar -x -C "$tree"
mkdir "$tree/programs"
cat >"$tree/programs/dpkg-query" <<'END'
#!/bin/sh
for package; do :; done
[ "$package" = "$LACKS" ] || echo 'ii '
END
chmod +x "$tree/programs/dpkg-query"

# make_without PACKAGE GOAL: what make prints, and its exit status. Nothing is ever compiled.
make_without() {
  rm -rf "$tree/build"
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL LACKS="$1" PATH="$tree/programs:$PATH" \
    make -C "$tree" --no-print-directory CC=false CLANG=false "$2" 2>&1
}

# names PACKAGE GOAL: the goal fails, names the package, and did nothing before.
names() {
  local said
  said=$(make_without "$1" "$2") && fail "make $2 goes on without $1"
  grep -q "^missing packages: $1\$" <<<"$said" || fail "make $2 without $1 says: $said"
  ! grep -qE '^ +[A-Z]+ +[a-z]+/' <<<"$said" || fail "make $2 without $1 compiles before it says so: $said"
}

names libcmocka-dev check
names libcmocka-dev check-more
names libelf-dev check
names libelf-dev all

# To build needs less than to test.
said=$(make_without libcmocka-dev build/.tools-build) || fail "make without cmocka does not build: $said"
said=$(make_without none build/.tools-check) || fail "make check with all packages says: $said"
exit $bad
