#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# clang-tidy over some files, as tests/lint.sh starts it: tests/tidy.sh CPPFLAGS FILE...
read -ra cppflags <<<"$1"
shift
exec clang-tidy-14 --quiet "$@" -- -std=gnu17 -Wno-missing-field-initializers "${cppflags[@]}"
