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
# These are no part of a name either.
parts='toll hearing kpi depot lobby picture outlet sentence framer locator rhythm advice splitter shelter roster'
while IFS= read -r file; do
  stem=${file##*/}
  stem=${stem%%.*}
  # tests/unit/ROOM/test_ROOM_x.c tests x.c.
  [[ $file != tests/unit/* || $stem != test_*_* ]] || stem=${stem#test_*_}
  case " ${words//$'\n'/ } " in
    *" $stem "*) report "$file: '$stem' explains nothing: name the file by the field's term" ;;
  esac
  for part in ${stem//_/ }; do
    case " $parts " in
      *" $part "*) report "$file: '$part' explains nothing: name the file by the field's term" ;;
    esac
  done
done < <(tests/files.sh '\.(c|h|py|sh)$')

# Types of one file too: a reader who searches for a name finds one thing. Test programs are exempt: a
# type of one is used in its file alone.
while IFS= read -r type; do
  report "$type is defined in several files: name each for what it holds, or for its room"
done < <(tests/files.sh '^(agent|aggregator|bench|bpf|cli|common|detect|engine|plugin|proto)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } |
  xargs -r sed -nE 's/^\t*(static )?(const )?(struct|enum|union) ([a-z0-9_]+) \{.*/\4/p' | LC_ALL=C sort | uniq -d)
exit $bad
