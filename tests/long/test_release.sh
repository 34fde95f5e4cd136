#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A release for real: the tarball is built without git, its Debian packages are clean for lintian, and in
# a fresh Debian they install, run, upgrade with the configuration kept, and leave as they should.
# Minutes, root. NT_DEBS: a directory of packages made before, instead of building.
set -euo pipefail

[ "$(id -u)" -eq 0 ] || {
  echo "skip: root: a chroot needs root"
  exit 77
}
for program in debootstrap dh lintian systemd-analyze; do
  command -v "$program" >/dev/null || {
    echo "skip: package: $program is not installed; tests/deps.sh package and image install it"
    exit 77
  }
done

fail() {
  echo "$*" >&2
  exit 1
}

work=$(mktemp -d)
root=$work/root
trap 'umount "$root/proc" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
version=$(deploy/release/version.sh)
debs=${NT_DEBS:-$work/deb}
if [ -z "${NT_DEBS:-}" ]; then
  deploy/release/dist.sh "$version" "$work/neutracer.tar.gz"
  mkdir "$work/bin"
  printf '#!/bin/sh\necho "git is not to be run" >&2\nexit 1\n' >"$work/bin/git"
  chmod +x "$work/bin/git"
  PATH=$work/bin:$PATH LINTIAN=1 deploy/release/deb.sh "$version" "$work/neutracer.tar.gz" "$debs"
fi
names=(neutracer neutracer-agent neutracer-aggregator neutracer-common neutracer-libraries)
files=()
for name in "${names[@]}"; do
  file=$(ls "$debs/${name}_$version"-*.deb)
  files+=("$file")
done

# ---- a fresh Debian ------------------------------------------------------------------------------

# With what the packages depend on, of which the first alternative is taken.
needs=$(for file in "${files[@]}"; do dpkg-deb -f "$file" Depends; done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g' |
  grep -v '^neutracer' | sort -u | paste -sd,)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # apt's format
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' "Codename: $suite" | head -n 1)
debootstrap --variant=minbase --include="$needs" "$suite" "$root" ${mirror:+"$mirror"} >"$work/log" 2>&1 ||
  fail "debootstrap: $(tail -n 5 "$work/log")"
mount -t proc proc "$root/proc"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # nothing is started there
chmod +x "$root/usr/sbin/policy-rc.d"
inside() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" "$@"; }
install_all() { # install_all FILE...
  cp "$@" "$root/tmp/"
  # shellcheck disable=SC2046 # names of files
  inside dpkg -i $(for file; do echo "/tmp/${file##*/}"; done) >"$work/log" 2>&1 || fail "dpkg -i: $(tail -n 20 "$work/log")"
}

install_all "${files[@]}"
for program in neutracer neutracer-agent neutracer-aggregator; do
  [ "$(inside "$program" --version)" = "$program $version" ] || fail "$program does not run there"
done
inside id neutracer >/dev/null || fail "there is no account"
[ "$(inside stat -c '%a %U %G' /var/lib/neutracer)" = '1770 root neutracer' ] ||
  fail "the directory is $(inside stat -c '%a %U %G' /var/lib/neutracer)"
[ "$(inside find /var/lib/neutracer/spool -mindepth 1 -maxdepth 1 | wc -l)" -eq 7 ] || fail "topics have no directories"
for name in agent aggregator; do
  said=$(NT_BUS=none inside "neutracer-$name" 2>&1) && fail "neutracer-$name accepts a wrong bus"
  [[ $said == *NT_BUS* ]] || fail "neutracer-$name does not accept its /etc/neutracer/$name.yaml: $said"
  inside systemctl is-enabled --quiet "neutracer-$name" || fail "neutracer-$name.service is not enabled"
  # The old libseccomp there does not have the names of two calls, and a small system has no manuals.
  said=$(inside systemd-analyze verify "neutracer-$name.service" 2>&1 | grep neutracer | grep -v -e "Failed to parse system call" -e "Command 'man" || :)
  [ -z "$said" ] || fail "systemd-analyze verify: $said"
done
inside ldd /usr/lib/neutracer/libneutracer-cupti.so >/dev/null || fail "a library of jobs cannot be loaded"
inside neutracer incidents >/dev/null 2>"$work/said" && fail "there is an aggregator"
grep -q neutracer "$work/said" || fail "the command does not run: $(cat "$work/said")"

# ---- an upgrade ----------------------------------------------------------------------------------

echo 'window-min: 700ms' >>"$root/etc/neutracer/agent.yaml"
echo data >"$root/var/lib/neutracer/store.db"
inside chown neutracer: /var/lib/neutracer/store.db
newer=()
for file in "${files[@]}"; do
  dpkg-deb -R "$file" "$work/unpacked"
  sed -i "s/$version-1/$version-2/" "$work/unpacked/DEBIAN/control"
  new=$work/$(basename "$file" | sed "s/$version-1/$version-2/")
  dpkg-deb -b "$work/unpacked" "$new" >/dev/null
  rm -r "$work/unpacked"
  newer+=("$new")
done
install_all "${newer[@]}"
# shellcheck disable=SC2016 # a format of dpkg
[ "$(inside dpkg-query -W -f '${Version}' neutracer-agent)" = "$version-2" ] || fail "it is not upgraded"
grep -q '^window-min: 700ms' "$root/etc/neutracer/agent.yaml" || fail "the upgrade lost a setting"
[ "$(inside stat -c '%U' /var/lib/neutracer/store.db)" = neutracer ] || fail "the upgrade changed the store"

# ---- the end -------------------------------------------------------------------------------------

inside dpkg -r "${names[@]}" >"$work/log" 2>&1 || fail "dpkg -r: $(tail -n 5 "$work/log")"
for kept in var/lib/neutracer/store.db etc/neutracer/agent.yaml; do [ -e "$root/$kept" ] || fail "removal took $kept"; done
left=$(find "$root/usr" "$root/lib/systemd" -name '*neutracer*' ! -path '*/systemd/deb-systemd-helper*')
[ -z "$left" ] || fail "removal leaves: $left"
inside dpkg -P "${names[@]}" >"$work/log" 2>&1 || fail "dpkg -P: $(tail -n 5 "$work/log")"
for gone in var/lib/neutracer etc/neutracer; do [ ! -e "$root/$gone" ] || fail "purging leaves $gone"; done
