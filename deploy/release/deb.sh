#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Makes the Debian packages, source and binary, from the source tarball and its deploy/debian.
#
#   deb.sh VERSION TARBALL OUT_DIR
#
# Environment:
#   LINTIAN   1: the packages are checked with lintian, whose errors and warnings are failures
#   JOBS      compilers that run at a time (as many as there are processors)
#   REVISION  of the package (1)
#   DEB_DISTRIBUTION  to which its changelog is directed (unstable)
# Debian packages: debhelper, lintian and what deploy/debian/control names. Needs no root.
set -euo pipefail

die() {
  echo "deb.sh: $*" >&2
  exit 1
}

version=${1:?VERSION} tarball=$(realpath "${2:?TARBALL}") out=${3:?OUT_DIR}
for program in dpkg-buildpackage dh; do command -v "$program" >/dev/null || die "$program is not installed: apt-get install dpkg-dev debhelper"; done
[ "${LINTIAN:-}" != 1 ] || command -v lintian >/dev/null || die "lintian is not installed"

rm -rf "$out"
mkdir -p "$out"
cd "$out"
cp "$tarball" "neutracer_$version.orig.tar.gz"
tar -xzf "neutracer_$version.orig.tar.gz"
cd "neutracer-$version"
epoch=$(sed -n 's/^SOURCE_DATE_EPOCH=//p' .release)
export SOURCE_DATE_EPOCH=${epoch:?the tarball has no time}
cp -r deploy/debian debian
echo '3.0 (quilt)' >debian/source/format
maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
cat >debian/changelog <<END
neutracer ($version-${REVISION:-1}) ${DEB_DISTRIBUTION:-unstable}; urgency=medium

  * Version $version. CHANGELOG.md lists the changes.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$epoch")
END
dpkg-buildpackage -us -uc -j"${JOBS:-$(nproc)}" >../build.log 2>&1 || {
  tail -n 30 ../build.log >&2
  die "the build fails: $out/build.log"
}
cd ..
rm -rf "neutracer-$version"
if [ "${LINTIAN:-}" = 1 ]; then
  # Packages of this project close no bug of Debian's.
  lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs,bad-distribution-in-changes-file \
    ./*.changes || die "lintian finds faults"
fi
ls -1 ./*.deb
