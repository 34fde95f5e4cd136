#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The route table of the REST interface and docs/api/openapi.yaml name the same paths, methods,
# parameters and open doors. What changes something needs scope admin, and the contract names 401 and 403.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# METHOD PATH open|token PARAMETERS, from the rows of the table, which may span lines.
sed -n '/^static const struct nt_httpd_route routes/,/^};/p' aggregator/api/api.c | tr -d '\n\t' |
  sed 's/{"\([A-Z]*\)", *"/\n\1 /g' | sed -n 's/^\([A-Z]*\) \([^"]*\)", *NT_HTTPD_\([A-Z]*\), *\(json\|"[^"]*"\), *\(NULL\|"[^"]*"\),.*/\1 \2 \3 \5/p' |
  tee "$work/rows" | sed 's/ OPEN / open /; s/ \(READ\|ADMIN\) / token /; s/ NULL$/ "/; s/"//g; s/ *$//' | sort >"$work/table"

# The same from the contract, which is written in a fixed layout.
awk '
function flush() {
  if (method != "")
    print toupper(method) " " path " " (open ? "open" : "token") words
  method = words = ""
  open = 0
}
/^[a-z]/ { flush(); inside = /^paths:/ }
!inside { next }
/^  \/.*:$/ { flush(); path = substr($1, 1, length($1) - 1) }
/^    (get|put|post|delete|patch|head|options):$/ { flush(); method = substr($1, 1, length($1) - 1) }
/^      security: \[\]$/ { open = 1 }
/^        - name: / { name = $3 }
/^          in: query$/ { words = words " " name }
/parameters\/[a-zA-Z]*'"'"'$/ {
  split($0, part, "parameters/")
  name = part[2]
  sub(/'"'"'$/, "", name)
  if (name ~ /Cursor$/)
    name = "cursor"
  if (name != "jobId" && name != "profileId" && name != "nodeName" && name != "receiverName" && name != "ifNoneMatch")
    words = words " " name
}
END { flush() }' docs/api/openapi.yaml | sort >"$work/contract"

# What every path may answer, whatever is asked: the server itself says so.
operations=$(wc -l <"$work/contract")
for status in 400 406 413 414 431 500 503; do
  found=$(sed -n '/^paths:/,/^components:/p' docs/api/openapi.yaml | grep -c "^        '$status':")
  if [ "$found" -ne "$operations" ]; then
    echo "docs/api/openapi.yaml: $found of $operations operations name $status"
    exit 1
  fi
done

# METHOD PATH STATUS of each status 401 and 403.
awk '
/^[a-z]/ { inside = /^paths:/ }
!inside { next }
/^  \/.*:$/ { path = substr($1, 1, length($1) - 1) }
/^    (get|put|post|delete|patch):$/ { method = toupper(substr($1, 1, length($1) - 1)) }
/^        .40[13].:/ { print method, path, substr($1, 2, 3) }' docs/api/openapi.yaml >"$work/denials"
bad=0
while read -r method path access _; do
  case $method/$access/$path in
    GET/* | */ADMIN/* | */READ//api/v1/session | */OPEN//api/v1/node-keys) ;;
    *)
      echo "aggregator/api/api.c: $method $path changes something and needs no scope admin"
      bad=1
      ;;
  esac
  for denial in "READ 401" "ADMIN 401" "ADMIN 403"; do
    [ "${denial% *}" = "$access" ] || continue
    grep -qxF "$method $path ${denial#* }" "$work/denials" || {
      echo "docs/api/openapi.yaml: $method $path does not name ${denial#* }"
      bad=1
    }
  done
done <"$work/rows"
[ "$bad" -eq 0 ] || exit 1

if [ ! -s "$work/table" ]; then
  echo "aggregator/api/api.c has no route table that this script can read"
  exit 1
fi
diff -u --label aggregator/api/api.c --label docs/api/openapi.yaml "$work/table" "$work/contract"
