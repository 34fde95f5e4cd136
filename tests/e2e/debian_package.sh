# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Programs of Debian that tests run without installing them: their services would start.

# fetch_package PACKAGE PROGRAM: unpacks the package into a cache and sets package_root. 1: it cannot be had.
# shellcheck disable=SC2034 # callers use it
fetch_package() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/neutracer/$1 new
  package_root=$cache # for callers
  [ ! -x "$cache/usr/bin/$2" ] || return 0
  command -v apt-get dpkg-deb >/dev/null || return 1
  mkdir -p "${cache%/*}"
  new=$(mktemp -d "$cache.XXXXXX")
  # shellcheck disable=SC2012 # there is one file
  if (cd "$new" && apt-get -qq download "$1" >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm -f ./*.deb); then
    mv -T "$new" "$cache" 2>/dev/null || rm -rf "$new" # another test was faster
    return 0
  fi
  rm -rf "$new"
  return 1
}
