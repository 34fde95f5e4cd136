#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every directory of sources enters the build of the image: one that its ignore file omits is found missing
# by a build in a container alone, which takes minutes and root.
set -euo pipefail

bad=0
ignore=deploy/image/Dockerfile.dockerignore
for room in */; do
  room=${room%/}
  case $room in
    tests | bench | build) continue ;;
  esac
  [ -n "$(find "$room" -name '*.[ch]' -print -quit)" ] || continue
  grep -qxF "!$room" "$ignore" || {
    echo "$ignore: there is no line \"!$room\""
    bad=1
  }
done
exit "$bad"
