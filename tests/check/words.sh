#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The project does not speak of the place where it was written: no paths of one machine, no hosts of
# package registries. And no TODO without an issue.
set -euo pipefail

bad=0
search() {
  local why=$1 pattern=$2 hits
  hits=$(tests/files.sh | grep -v -e '^tests/check/words.sh$' -e '^LICENSE$' -e '^tests/data/.*gz$' |
    tr '\n' '\0' | xargs -0r grep -InE "$pattern" || :)
  [ -n "$hits" ] || return 0
  while IFS= read -r hit; do
    echo "$hit"
  done <<<"$hits"
  echo "^ $why"
  bad=1
}

search 'a path of one machine' '(^|[^A-Za-z0-9_.])(/work/|/tmp/w/|/home/[a-z]+/|/root/[A-Za-z])|\.\./shared'
search 'a host of a package registry' 'pypi\.org|pythonhosted\.org|proxy\.golang\.org|registry\.npmjs|crates\.io|deb\.debian\.org'
search 'how the work was organised' '\b([Ww]orking|[Pp]revious|[Nn]ext|[Ll]ater|[Ee]arlier|[Cc]oding) session|workplace|[Ll]anguage model|AI assistant'
search 'a TODO names its issue: TODO(#12)' '\b(TODO|FIXME|XXX)\b([^(]|$)'
exit $bad
