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

wanted() {
  case $1 in
    bpf/*) echo '(GPL-2.0-only OR BSD-2-Clause)' ;;
    plugin/*) echo 'Apache-2.0' ;;
    *) echo 'GPL-3.0-or-later' ;;
  esac
}

while IFS= read -r file; do
  case $file in
    LICENSE | */LICENSE | */LICENSE.*) continue ;;
    tests/data/*/*)
      [ -e "$(dirname "$file")/LICENSE" ] || report "$file" "no LICENSE in its directory"
      continue
      ;;
    tests/golden/* | tests/fuzz/corpus/*) continue ;; # made by our own tests
    *.json | *.svg | *.png | */go.sum) continue ;;
  esac
  found=$(head -n 5 "$file" | sed -n 's/.*SPDX-License-Identifier: \([^*>]*[^*> -]\).*/\1/p' | head -n 1)
  want=$(wanted "$file")
  if [ -z "$found" ]; then
    report "$file" "no SPDX-License-Identifier in the first five lines, want $want"
  elif [ "$found" != "$want" ]; then
    # A BPF test program or benchmark may be licensed like the kernel side.
    case $file in
      *.bpf.c | *.bpf.h) [ "$found" = '(GPL-2.0-only OR BSD-2-Clause)' ] && continue ;;
    esac
    report "$file" "licence is '$found', want '$want'"
  fi
done < <(tests/files.sh)
cmp -s LICENSE <(cat /usr/share/common-licenses/GPL-3 2>/dev/null || cat LICENSE) ||
  report LICENSE "is not the text of the GPL, version 3"
exit $bad
