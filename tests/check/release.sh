#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A release: the version is the same everywhere, and the source tarball has every file of the commit, nothing
# that was built, no name or time of this machine, and makes itself again with the same bytes.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(deploy/release/version.sh)

# ---- the version ---------------------------------------------------------------------------------

section=$(sed -n 's/^## \[\([0-9][^]]*\)\] - .*/\1/p' CHANGELOG.md | head -n 1)
[ "$section" = "$version" ] || report "CHANGELOG.md: the newest section is of '$section', want $version"
grep -E '^## ' CHANGELOG.md | grep -vE '^## \[[0-9]+\.[0-9]+\.[0-9]+\] - ([0-9]{4}-[0-9]{2}-[0-9]{2}|Unreleased)$' &&
  report "CHANGELOG.md: a section is '## [VERSION] - DATE', or Unreleased"
grep -E '^### ' CHANGELOG.md | sort -u | grep -vxE '### (Added|Changed|Deprecated|Removed|Fixed|Security)' &&
  report "CHANGELOG.md: Keep a Changelog has no such heading"
[ -n "$(deploy/release/version.sh --notes)" ] || report "CHANGELOG.md: the section of $version is empty"
for page in docs/man/*; do
  grep -q "^\.TH .* \"NeuTracer $version\"$" "$page" || report "$page is not of version $version: run 'make man'"
done
for key in version appVersion; do
  [ "$(sed -n "s/^$key: //p" deploy/helm/neutracer/Chart.yaml)" = "$version" ] ||
    report "deploy/helm/neutracer/Chart.yaml: $key is not $version"
done
! deploy/release/version.sh --tag v0.0.0 2>/dev/null || report "version.sh accepts the tag of another version"

# ---- the tarball ---------------------------------------------------------------------------------

deploy/release/dist.sh "$version" "$work/one.tar.gz"
tar -tvzf "$work/one.tar.gz" >"$work/list"
awk '{ print $2, $4, $5 }' "$work/list" | sort -u >"$work/owners"
[ "$(cut -d' ' -f1 "$work/owners" | sort -u)" = 0/0 ] || report "files of the tarball have owners: $(sort -u "$work/owners" | head -n 3)"
[ "$(cut -d' ' -f2,3 "$work/owners" | sort -u | wc -l)" -eq 1 ] || report "files of the tarball have several times"
tar -xzf "$work/one.tar.gz" -C "$work" 2>/dev/null
tree=$work/neutracer-$version
if [ -e .git ]; then
  diff <({ git ls-tree -r --name-only HEAD && echo .release; } | LC_ALL=C sort) \
    <(cd "$tree" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort) >"$work/diff" ||
    report "the tarball has not the files of the commit: $(head -n 5 "$work/diff")"
fi
# The Makefile turns -Werror off where it is.
grep -qx "VERSION=$version" "$tree/.release" || report "the tarball's .release is of another version"
grep -qE '^(build/|.*\.o$)' <(cd "$tree" && find . -type f | sed 's|^\./||') && report "the tarball has files that were built"
(cd "$tree" && TZ=Asia/Tokyo deploy/release/dist.sh "$version" "$work/two.tar.gz")
cmp -s "$work/one.tar.gz" "$work/two.tar.gz" || report "the tarball of an unpacked tarball has other bytes"
exit $bad
