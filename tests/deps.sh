#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs missing Debian packages.
#
#   tests/deps.sh            all: to build, to test, to check the style
#   tests/deps.sh build      for the programs and the demo
#   tests/deps.sh check      for `make check`, in addition
#   tests/deps.sh image      for building the container image
#   tests/deps.sh package    for the Debian packages, in addition to build
#   tests/deps.sh cluster    for the tests on a real Kubernetes, in addition to Go
#   tests/deps.sh --missing [GROUP]   only prints the missing packages, exit 1 if there are any
set -euo pipefail

build=(
  gcc libc6-dev make pkg-config
  clang-14 llvm-14 libbpf-dev bpftool libelf-dev zlib1g-dev
  protobuf-c-compiler libprotobuf-c-dev librdkafka-dev
  libmicrohttpd-dev libjansson-dev libsqlite3-dev libarchive-dev libcurl4-openssl-dev libssl-dev
  libcyaml-dev uthash-dev liblapacke-dev
  curl jq util-linux python3
)
check=(libcmocka-dev binutils git python3)
test=(
  "${check[@]}" libclang-rt-14-dev
  openmpi-bin libopenmpi-dev mpich libmpich-dev gfortran lammps python3-torch libopenblas0-pthread
  curl jq procps iproute2 util-linux mount sqlite3 man-db zsh fish
  python3-pip python3-venv python3-yaml python3-sklearn ca-certificates bpftrace
  openjdk-17-jre-headless maven kcat protobuf-compiler openssl systemd libseccomp2
  qemu-system-x86 busybox-static xz-utils libibverbs-dev ibverbs-utils ibverbs-providers
  chromium-headless-shell fonts-dejavu-core
)
image=(buildah debootstrap)
package=(dpkg-dev debhelper lintian fakeroot)
cluster=(
  "${image[@]}" etcd-server containerd runc containernetworking-plugins nftables iptables iproute2
  conntrack procps openssl curl jq busybox-static bpftool util-linux openjdk-17-jre-headless maven
)
lint=(clang-format-14 clang-tidy-14 cppcheck shellcheck)

# Debian 12 has several versions of clang, of which 14 is used; later releases have a suitable one.
# shellcheck source=/dev/null # of the machine
debian=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") || debian=

missing=()
look() {
  local package status
  for package; do
    [ "${debian:-12}" = 12 ] || package=${package%-14}
    status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) || status=
    [ "${status%% }" = ii ] || missing+=("$package")
  done
}

only_print=
if [ "${1:-}" = --missing ]; then
  only_print=1
  shift
fi
case ${1:-all} in
  build) wanted=("${build[@]}") ;;
  check) wanted=("${check[@]}") ;;
  package) wanted=("${package[@]}") ;;
  image) wanted=("${image[@]}") ;;
  cluster) wanted=("${cluster[@]}") ;;
  all) wanted=("${build[@]}" "${test[@]}" "${lint[@]}") ;;
  *)
    echo "tests/deps.sh: unknown group '$1', there are: build check image package cluster" >&2
    exit 2
    ;;
esac

command -v dpkg-query >/dev/null || {
  [ -n "$only_print" ] && exit 0 # the compiler will report what is missing
  echo "tests/deps.sh: this is no Debian, where it would install: ${wanted[*]}" >&2
  exit 1
}
look "${wanted[@]}"
[ ${#missing[@]} -gt 0 ] || exit 0
if [ -n "$only_print" ]; then
  echo "${missing[*]}"
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "tests/deps.sh: missing packages; as root: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "installing ${#missing[@]} packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
"${apt[@]}" update || echo "tests/deps.sh: the package lists could not be updated; trying with the old ones" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "tests/deps.sh: cannot install ${missing[*]}" >&2
  exit 1
fi
