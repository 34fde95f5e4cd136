# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Debian's Prometheus and promtool, unpacked into a cache and not installed.

# shellcheck source=tests/e2e/debian_package.sh
. tests/e2e/debian_package.sh

# Sets prometheus and promtool; 1: they cannot be had.
fetch_prometheus() {
  fetch_package prometheus prometheus || return 1
  prometheus=$package_root/usr/bin/prometheus
  promtool=$package_root/usr/bin/promtool
}

# run_prometheus PORT CONFIG DATA: in place of this shell.
run_prometheus() {
  exec "$prometheus" --config.file="$2" --storage.tsdb.path="$3" --web.listen-address="127.0.0.1:$1" \
    --web.enable-lifecycle --log.level=warn
}
