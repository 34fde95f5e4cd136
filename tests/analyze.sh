#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# gcc -fanalyzer over one file, as tests/lint.sh starts it: tests/analyze.sh CPPFLAGS FILE. Some
# files full of uthash's macros would take hours: the limit is a minute of processor time. Leaks are
# left to the sanitizers and to check-oom, null pointers to clang-tidy: gcc 12 reports memory owned
# by a struct as leaked, and does not see that a pointer is set if a call returned no error.
read -ra cppflags <<<"$1"
ulimit -t 60
said=$(LC_ALL=C gcc -std=gnu17 "${cppflags[@]}" -O0 -Wall -Wextra -Wno-missing-field-initializers \
  -Werror -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-dereference -c -o /dev/null "$2" 2>&1)
status=$?
case $said in
  *'Killed signal terminated program cc1'* | *'CPU time limit exceeded'*)
    echo "given up: $2"
    exit 0
    ;;
esac
[ -z "$said" ] || printf '%s\n' "$said"
exit $status
