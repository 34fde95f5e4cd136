#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make install` does beside copying: the account and the directories of the two lists here, as
# systemd-sysusers and systemd-tmpfiles make them of the installed ones.
#
#   setup.sh [ROOT]
#
# Under a ROOT no account is made, and owners are set where ROOT/etc knows them: for images, and for
# packages, which leave owners to the machine that they are installed on.
set -euo pipefail

here=$(dirname "$0") root=${1:-}
name=neutracer state=/var/lib/neutracer

if [ -z "$root" ] && [ "$(id -u)" -ne 0 ]; then
  echo "not root: the account $name and $state are not made" >&2
  exit 0
fi

if [ -z "$root" ]; then
  getent group "$name" >/dev/null || groupadd --system "$name"
  getent passwd "$name" >/dev/null || useradd --system --gid "$name" --home-dir "$state" --no-create-home \
    --shell /usr/sbin/nologin --comment NeuTracer "$name"
fi

# id_of passwd|group NAME: its number, or nothing.
id_of() {
  if [ -z "$root" ]; then
    getent "$1" "$2" | cut -d: -f3
  elif [ -r "$root/etc/$1" ]; then
    awk -F: -v name="$2" '$1 == name { print $3 }' "$root/etc/$1"
  fi
}

# What is there already was perhaps made while both programs were root. Links are not followed: the
# account may have made some.
adopt() { # adopt PATH USER UID GID
  case $1 in
    "$state") find "$1" -maxdepth 1 \( -name 'store.db*' -o -name token \) -exec chown -h "$name:$name" {} + ;;
    "$state/spool" | "$state/shelter") ;;
    *)
      chown -R -h "$3:$4" "$1"
      [ "$2" != root ] || find "$1" -type d -exec chmod g+s {} +
      ;;
  esac
}

while read -r kind path mode user group _; do
  [ "$kind" = d ] || continue
  owner=()
  uid=0 gid=0
  [ "$group" = root ] || gid=$(id_of group "$group")
  [ "$user" = root ] || uid=$(id_of passwd "$user")
  [ "$(id -u)" -ne 0 ] || [ -z "$uid" ] || [ -z "$gid" ] || owner=(-o "$uid" -g "$gid")
  [ -n "$root" ] || [ ! -d "$path" ] || adopt "$path" "$user" "$uid" "$gid"
  install -d -m "$mode" "${owner[@]}" "$root$path"
done <"$here/neutracer.tmpfiles"

[ -n "$root" ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload
