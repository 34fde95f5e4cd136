#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every file names its licence in its first lines, and the one that its room has. Data that cannot
# carry a line have a licence file or a README beside them.
set -euo pipefail

bad=0
report() {
  echo "$1: $2"
  bad=1
}

wanted() { # wanted FILE: sets want
  case $1 in
    bpf/*) want='(GPL-2.0-only OR BSD-2-Clause)' ;;
    plugin/gpu_record.h) want='(Apache-2.0 OR BSD-2-Clause)' ;; # of both sides
    plugin/*) want='Apache-2.0' ;;
    *) want='GPL-3.0-or-later' ;;
  esac
}

files() {
  tests/files.sh | while IFS= read -r file; do
    case $file in
      LICENSE | */LICENSE | */LICENSE.* | deploy/debian/copyright) continue ;;
      tests/data/*/*) [ -e "${file%/*}/LICENSE" ] || echo "$file" ;;
      tests/golden/* | tests/fuzz/corpus/*) continue ;; # made by our own tests
      *.json | *.svg | *.png | */go.sum) continue ;;
      *) echo "$file" ;;
    esac
  done
}

# licences FILE...: "FILE:LICENCE" for each, which is empty if its first five lines have none.
licences() {
  # shellcheck disable=SC2016 # awk's variables
  awk 'function done() { if (file != "") print file ":" found }
    FNR == 1 { done(); file = FILENAME; found = "" }
    FNR > 5 { nextfile }
    found == "" && match($0, /SPDX-License-Identifier: [^*>]*[^*> -]/) {
      found = substr($0, RSTART + 25, RLENGTH - 25)
    }
    END { done() }' "$@"
}

while IFS= read -r line; do
  file=${line%:*} found=${line##*:}
  case $file in tests/data/*/*)
    report "$file" "no LICENSE in its directory"
    continue
    ;;
  esac
  wanted "$file"
  if [ -z "$found" ]; then
    report "$file" "no SPDX-License-Identifier in the first five lines, want $want"
  elif [ "$found" != "$want" ]; then
    # A BPF test program or benchmark may be licensed like the kernel side.
    case $file in
      *.bpf.c | *.bpf.h) [ "$found" = '(GPL-2.0-only OR BSD-2-Clause)' ] && continue ;;
    esac
    report "$file" "licence is '$found', want '$want'"
  fi
done < <(mapfile -t all < <(files) && licences "${all[@]}")
cmp -s LICENSE <(cat /usr/share/common-licenses/GPL-3 2>/dev/null || cat LICENSE) ||
  report LICENSE "is not the text of the GPL, version 3"
exit $bad
