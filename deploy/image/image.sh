#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds a container image where there is neither a registry nor a daemon: buildah, over a Debian base
# made by debootstrap. The Dockerfiles are ordinary ones, and docker build takes them as well.
#
#   image.sh TAG OUT.tar [BUILDAH OPTION...] CONTEXT    e.g. image.sh neutracer:dev neutracer.tar .
#
# The Dockerfiles say FROM debian:SUITE-slim. Environment:
#   NT_DEBIAN   SUITE (trixie); bookworm is tried as well
#   NT_IMAGES   where images and their layers are kept (~/.cache/neutracer-images)
# Debian packages: buildah debootstrap. Needs root.
set -euo pipefail

die() {
  echo "image.sh: $*" >&2
  exit 1
}

[ $# -ge 3 ] || {
  sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
  exit 64
}
tag=$1 out=$2
shift 2
images=${NT_IMAGES:-$HOME/.cache/neutracer-images}
suite=${NT_DEBIAN:-trixie}
base=docker.io/library/debian:$suite-slim
[ "$(id -u)" -eq 0 ] || die "needs root"
missing=()
for program in buildah debootstrap; do command -v "$program" >/dev/null || missing+=("$program"); done
[ ${#missing[@]} -eq 0 ] || die "not installed: ${missing[*]}"

mkdir -p "$images"
# Whoever builds at the same time would make the base twice.
exec 9>"$images/lock"
flock 9

buildah() {
  command buildah --root "$images/store" --runroot "$images/run" --storage-driver overlay "$@" 9>&-
}

# The base's packages come from where this machine's do, and no others: a mirror, say.
sources() { # sources SUITE
  local uri label component
  apt-get indextargets --format "\$(LABEL)|\$(REPO_URI)|\$(COMPONENT)" 'Created-By: Packages' 'Origin: Debian' |
    sort -u | while IFS='|' read -r label uri component; do
    [ "$component" = main ] || continue
    case $label in
      Debian) echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $1 main" ;;
      Debian-Security)
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $1-security main"
        ;;
    esac
  done | sort -u
}

make_base() {
  local root container mirror
  root=$(mktemp -d)
  trap 'rm -rf "$root"; tidy' EXIT
  mirror=$(sources "$suite" | sed -n 's/^deb \[[^]]*\] \([^ ]*\) '"$suite"' .*/\1/p' | head -n 1)
  echo "image.sh: making a base, debian:$suite-slim" >&2
  debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$images/base-$suite.log" 2>&1 ||
    { tail -n 5 "$images/base-$suite.log" >&2 && die "debootstrap failed"; }
  rm -f "$root"/etc/apt/sources.list
  sources "$suite" >"$root/etc/apt/sources.list.d/debian.list"
  # How packages are fetched here (a proxy, say) and what the slim images leave out.
  apt-config dump Acquire | grep -iE 'proxy|::Check-' >"$root/etc/apt/apt.conf.d/90here" || :
  printf 'path-exclude /usr/share/%s/*\n' doc man locale info >"$root/etc/dpkg/dpkg.cfg.d/slim"
  echo 'path-include /usr/share/doc/*/copyright' >>"$root/etc/dpkg/dpkg.cfg.d/slim"
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  rm -rf "$root"/usr/share/{man,locale,info}/* "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  container=$(buildah from scratch)
  buildah add -q "$container" "$root" / >/dev/null
  buildah config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit -q --rm "$container" "$base" >/dev/null
  rm -rf "$root"
  trap tidy EXIT
}

# What a build that failed left, and the mounts of one that did not.
tidy() {
  buildah rm -a >/dev/null 2>&1 || :
  ! mountpoint -q "$images/store/overlay" || umount "$images/store/overlay" || :
}

trap tidy EXIT
buildah inspect --type image "$base" >/dev/null 2>&1 || make_base
buildah build --pull-never --isolation chroot --layers --build-arg "DEBIAN=$suite" -t "$tag" "$@" >&2
rm -f "$out"
buildah push -q "$tag" "docker-archive:$out:$tag"
