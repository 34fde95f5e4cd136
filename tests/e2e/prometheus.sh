# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Debian's Prometheus and promtool, unpacked into a cache and not installed.

# shellcheck source=tests/e2e/debian_package.sh
. tests/e2e/debian_package.sh

# Sets prometheus and promtool; 1: they cannot be had.
# shellcheck disable=SC2034 # callers use them
fetch_prometheus() {
  fetch_package prometheus prometheus || return 1
  prometheus=$package_root/usr/bin/prometheus
  promtool=$package_root/usr/bin/promtool
}

# run_prometheus PORT CONFIG DATA: in place of this shell. Firing alerts are sent each second, not each minute.
run_prometheus() {
  exec "$prometheus" --config.file="$2" --storage.tsdb.path="$3" --web.listen-address="127.0.0.1:$1" \
    --rules.alert.resend-delay=1s --log.level=warn
}

# write_rules DIR: copies of the rules that differ only in their interval, a second.
write_rules() {
  local file
  for file in deploy/helm/neutracer/monitoring/*.yaml; do
    sed 's/^  - name: .*/&\n    interval: 1s/' "$file" >"$1/${file##*/}"
  done
}

# write_bearer TOKENS FILE: the first token of a token file.
write_bearer() {
  head -n 1 "$1" | cut -d' ' -f1 | tr -d '\n' >"$2"
}
