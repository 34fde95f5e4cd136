#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# One noun means one thing: no two types of one name, and no file named by a word that stood for
# something else than what it means in this field.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

# Each was replaced by the term of the field for what the file holds.
words='toll word pace unit hearing port kpi space tail wait gap answer role balance core head depot lobby line member
  picture outlet place pack sequence sentence framer meter home locator front order work comm subtree peer rhythm
  layout span interpreter kernel reach judge advice trouble splitter num shelter ending secrets stall
  outside remote roster bundle repeat tell'
while IFS= read -r file; do
  stem=$(basename "$file")
  stem=${stem%%.*}
  case " ${words//$'\n'/ } " in
    *" $stem "*) report "$file: '$stem' explains nothing: name the file by the field's term" ;;
  esac
done < <(tests/files.sh '\.[ch]$')

while IFS= read -r type; do
  report "$type is defined in several files: a type that crosses rooms carries its room in its name"
done < <(tests/files.sh '^(agent|aggregator|bpf|cli|common|detect|engine|plugin|proto)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } |
  xargs -r sed -nE 's/^(struct|enum|union) (nt_[a-z0-9_]+) \{.*/\2/p' | LC_ALL=C sort | uniq -d)
exit $bad
