# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Debian's Alertmanager, unpacked into a cache and not installed. It reads its templates from a fixed path, so it
# runs in a mount namespace where that is its own.

# Sets alertmanager, the directory with its files; 1: it cannot be had.
fetch_alertmanager() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/neutracer/alertmanager new
  alertmanager=$cache
  [ ! -x "$cache/usr/bin/prometheus-alertmanager" ] || return 0
  command -v apt-get dpkg-deb >/dev/null || return 1
  mkdir -p "${cache%/*}"
  new=$(mktemp -d "$cache.XXXXXX")
  # shellcheck disable=SC2012 # there is one file
  if (cd "$new" && apt-get -qq download prometheus-alertmanager >/dev/null 2>&1 && dpkg-deb -x ./*.deb . && rm -f ./*.deb); then
    mv -T "$new" "$cache" 2>/dev/null || rm -rf "$new" # another test was faster
    return 0
  fi
  rm -rf "$new"
  return 1
}

# run_alertmanager PORT CONFIG DATA: in place of this shell.
run_alertmanager() {
  # shellcheck disable=SC2016 # for the inner shell
  exec unshare --mount --propagation private bash -c '
    mount -t tmpfs none /usr/share && mkdir -p /usr/share/prometheus &&
    cp -r "$0/usr/share/prometheus/alertmanager" /usr/share/prometheus/ &&
    exec "$0/usr/bin/prometheus-alertmanager" --cluster.listen-address= --web.listen-address="127.0.0.1:$1" \
      --config.file="$2" --storage.path="$3"' "$alertmanager" "$@"
}
