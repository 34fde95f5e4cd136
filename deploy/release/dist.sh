#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the source tarball: the files of the last commit, or of an unpacked tarball itself. The same files
# give the same bytes on every machine.
#
#   dist.sh VERSION OUT.tar.gz
#
# SOURCE_DATE_EPOCH is the time of all files: without it that of the commit, or of the tarball. It is
# recorded in the file .release, which also turns -Werror off: tarballs are built with unknown compilers.
set -euo pipefail

version=${1:?VERSION} out=${2:?OUT}
tree=$(mktemp -d)
trap 'rm -rf "$tree" "$out.new"' EXIT
umask 022
name=neutracer-$version
mkdir -p "$tree/$name" "$(dirname "$out")"
# In a tarball that was unpacked below another repository, git would name files of that one.
if [ -e .git ]; then
  git archive --format=tar HEAD | tar -x -C "$tree/$name"
  epoch=$(git log -1 --format=%ct)
else
  tar -c --exclude=./build --exclude=./.release . | tar -x -C "$tree/$name"
  epoch=$(sed -n 's/^SOURCE_DATE_EPOCH=//p' .release)
fi
epoch=${SOURCE_DATE_EPOCH:-$epoch}
printf 'VERSION=%s\nSOURCE_DATE_EPOCH=%s\n' "$version" "${epoch:?no time}" >"$tree/$name/.release"
tar -c --format=gnu --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+rX,go-w \
  -C "$tree" "$name" | gzip -n >"$out.new"
mv "$out.new" "$out"
