#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The version, which is NT_VERSION in common/base/version.h.
#
#   version.sh              prints it
#   version.sh --tag TAG    prints it, if TAG is vVERSION and the changelog has a dated section of it
#   version.sh --notes      prints the changelog's section of it
set -euo pipefail

die() {
  echo "version.sh: $*" >&2
  exit 1
}

cd "$(dirname "$0")/../.."
version=$(sed -n 's/^#define NT_VERSION "\(.*\)"$/\1/p' common/base/version.h)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "NT_VERSION is no version: '$version'"
case ${1:-} in
  '') ;;
  --tag)
    [ "${2:-}" = "v$version" ] || die "the tag is '${2:-}', want v$version"
    grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md || die "CHANGELOG.md has no dated section of $version"
    ;;
  --notes)
    awk -v head="## [$version]" 'index($0, "## ") == 1 { on = index($0, head) == 1; next } on' CHANGELOG.md
    exit
    ;;
  *) die "usage: version.sh [--tag TAG | --notes]" ;;
esac
echo "$version"
