#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The slow part of `make lint`: clang-tidy, cppcheck and gcc -fanalyzer over the C files, as many at
# once as there are processors. Without FILE, all files of the product's rooms.
#
#   tests/lint.sh CPPFLAGS [FILE...]
set -euo pipefail

read -ra cppflags <<<"$1"
shift
if [ $# -eq 0 ]; then
  mapfile -t files < <(tests/files.sh '^(agent|aggregator|cli|common|detect|engine|plugin|proto)/.*\.c$')
else
  files=("$@")
fi
jobs=$(nproc)
bad=0

echo "  clang-tidy (${#files[@]} files)"
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$jobs" tests/tidy.sh "${cppflags[*]}" >build/lint-tidy.txt 2>&1 || :
if grep -qE ' (error|warning): ' build/lint-tidy.txt; then
  cat build/lint-tidy.txt
  bad=1
fi

# Not supported by cppcheck: the cleanup attribute (memleak, resourceLeak), statement expressions
# (constStatement), outputs of uthash's macros (uninitvar), pointers to the middle of an array
# (objectIndex), symbols made by the linker (comparePointers).
echo "  cppcheck"
cppcheck -q -j "$jobs" --std=c11 --language=c --enable=warning,performance,portability \
  --inline-suppr --error-exitcode=1 --suppress=memleak --suppress=resourceLeak \
  --suppress=constStatement --suppress=uninitvar --suppress=objectIndex --suppress=comparePointers \
  --suppress=nullPointerArithmeticRedundantCheck --suppress=missingIncludeSystem \
  --suppress=unknownMacro -D__GNUC__=12 -DNT_MUST_CHECK= -I. "${files[@]}" || bad=1

echo "  gcc -fanalyzer"
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$jobs" tests/analyze.sh "${cppflags[*]}" || bad=1
exit $bad
