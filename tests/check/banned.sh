#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Functions that are not used here, and what is used instead.
set -euo pipefail

rules() {
  cat <<'RULES'
strcpy|strcat|stpcpy	snprintf(), or nt_buf_append()
strncpy|strncat	snprintf(), or memcpy() of a checked length
sprintf|vsprintf	snprintf(), or nt_buf_printf()
strtok	strcspn() and strspn() over (pointer, length)
atoi|atol|atoll|atof	nt_parse_u64() and its kin
strtol|strtoll|strtoul|strtoull|strtoimax|strtoumax	nt_parse_u64() and its kin
sscanf|vsscanf|fscanf|scanf	nt_parse_u64() and its kin, over (pointer, length)
gets	fgets() or read()
alloca	a fixed array, or malloc() with nt_autofree
signal	sigaction() or signalfd()
localtime|localtime_r|gmtime|gmtime_r|ctime|asctime	nt_clock_format()
strerror|strerror_r	strerrordesc_np(), or nt_err() which appends it
usleep	a timer of the loop, or nanosleep()
system	posix_spawn() with an argument vector
mktemp|tmpnam|tempnam	mkstemp() or mkdtemp()
RULES
}

bad=0
report() {
  echo "$1: $2"
  bad=1
}

code=$(mktemp)
trap 'rm -f "$code"' EXIT

# Only files that a first look finds suspicious are read without their comments.
words=$(rules | cut -f1 | paste -sd'|')
call="(^|[^A-Za-z0-9_.>])($words|exit|abort|quick_exit|assert|nt_(err|warn|info|debug|log_write))[[:space:]]*\("
while IFS= read -r file; do
  # Without comments, strings and includes, each line still at its number.
  gcc -fpreprocessed -E -w -x c "$file" 2>/dev/null |
    awk '/^# [0-9]+ / { line = $2 - 1; next } { line++; print line ":" $0 }' |
    sed -E 's/"([^"\\]|\\.)*"/""/g; /^[0-9]+:[[:space:]]*#[[:space:]]*include/d' >"$code"
  while IFS=: read -r line text; do
    word=$(grep -oE "(^|[^A-Za-z0-9_.>])($words)[[:space:]]*\(" <<<" $text" | head -n 1 | tr -cd 'a-z_')
    instead=$(rules | awk -F'\t' -v w="$word" '{ n = split($1, a, "|"); for (i = 1; i <= n; i++) if (a[i] == w) print $2 }')
    report "$file:$line" "$word() is banned: use $instead"
  done < <(grep -E "(^|[^A-Za-z0-9_.>])($words)[[:space:]]*\(" "$code" || :)

  # A program ends in its main(); everything else returns.
  case $file in
    */main.c | tests/* | bench/*) ;;
    *)
      while IFS=: read -r line _; do
        report "$file:$line" "exit() outside main.c: return an error, main() decides"
      done < <(grep -E '(^|[^A-Za-z0-9_.>])(exit|abort|quick_exit)[[:space:]]*\(' "$code" || :)
      ;;
  esac
  # These rooms return what went wrong; who called them says it.
  case $file in
    common/system/log.*) ;;
    detect/* | proto/* | common/*)
      while IFS=: read -r line _; do
        report "$file:$line" "a library does not log: return the error"
      done < <(grep -E '(^|[^A-Za-z0-9_])nt_(err|warn|info|debug|log_write)[[:space:]]*\(' "$code" || :)
      ;;
  esac
  # assert() is for our own mistakes: it may not have an effect.
  while IFS=: read -r line _; do
    report "$file:$line" "assert() with a side effect"
  done < <(case $file in tests/*) ;; *) grep -E '(^|[^_])assert[[:space:]]*\(.*(\+\+|--|[^=!<>]=[^=])' "$code" || : ;; esac)
done < <(tests/files.sh '\.[ch]$' | tr '\n' '\0' | xargs -0 grep -lE "$call" || :)
exit $bad
