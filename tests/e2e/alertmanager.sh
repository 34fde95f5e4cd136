# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Debian's Alertmanager, unpacked into a cache and not installed. It reads its templates from a fixed path, so it
# runs in a mount namespace where that is its own.

# shellcheck source=tests/e2e/debian_package.sh
. tests/e2e/debian_package.sh

# Sets alertmanager, the directory with its files; 1: it cannot be had.
fetch_alertmanager() {
  fetch_package prometheus-alertmanager prometheus-alertmanager || return 1
  alertmanager=$package_root
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
