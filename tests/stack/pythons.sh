#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The interpreters of other Debian suites, each in a root directory of its own, with the C library and
# what else it needs. Nothing is installed. Prints NT_PYTHONS for the tests of stacks; what cannot be
# had is left out.
#
#   tests/stack/pythons.sh [FOLDER]      (~/.cache/neutracer-pythons)
set -euo pipefail
folder=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/neutracer-pythons}")
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\(http[^ ]*\) .*/\2/p' \
  /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | grep -m1 'debian/*$' || :)
keys=/usr/share/keyrings/debian-archive-keyring.gpg

apt_of() { # apt_of SUITE COMMAND...: with lists of its own
  local at=$folder/apt/$1
  shift
  "$@" -o Dir::Etc::sourcelist="$at/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$at/lists" -o Dir::Cache="$at/cache" -o APT::Sandbox::User=root
}

unpack() { # unpack SUITE VERSION
  local suite=$1 version=$2 at=$folder/apt/$1 root=$folder/$1 link package
  mkdir -p "$at/lists" "$at/cache/archives/partial" "$at/debs"
  echo "deb [signed-by=$keys] $mirror $suite main" >"$at/sources.list"
  apt_of "$suite" timeout 120 apt-get -qq update || return 1
  for package in libc6 libcrypt1 zlib1g libexpat1 libgcc-s1 "python$version-minimal" \
    "libpython$version-minimal" "libpython$version-stdlib"; do
    (cd "$at/debs" && apt_of "$suite" timeout 120 apt-get -qq download "$package/$suite") || return 1
  done
  rm -rf "$root"
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{proc,tmp}
  # bullseye's packages have files in /lib, those of later suites links in its place.
  [ "$suite" = bullseye ] || for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
  for package in "$at"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
  chroot "$root" "/usr/bin/python$version" -c '' || return 1
  touch "$root/.complete"
}

pythons=
for suite in bullseye:3.9 trixie:3.13 sid:3.14; do
  version=${suite#*:} suite=${suite%:*}
  if [ ! -e "$folder/$suite/.complete" ]; then
    if [ -z "$mirror" ] || [ ! -r "$keys" ] || ! unpack "$suite" "$version" >&2; then
      echo "no python$version of $suite" >&2
      continue
    fi
  fi
  pythons+="${pythons:+ }$folder/$suite!/usr/bin/python$version"
done
echo "$pythons"
