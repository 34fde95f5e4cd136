#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The libraries that run inside traced processes: they load wherever glibc is 2.28 or newer, export what
# CUDA or NCCL looks for, touch nothing of the process, and have a mark that the kernel can attach to.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

# Place in the file, address, bytes in the file and flags of each segment.
segments() { readelf -lW "$file" | awk '$1 == "LOAD" { print $2, $3, $5, $7 ($8 ~ /^[RWE]$/ ? $8 : "") }'; }

# place ADDRESS: sets offset, its place in the file, and flags of its segment. 1: it is not in the file.
place() {
  local at=$(($1)) from address bytes
  while read -r from address bytes flags; do
    if [ "$at" -ge $((address)) ] && [ "$at" -lt $((address + bytes)) ]; then
      offset=$((from + at - address))
      return 0
    fi
  done < <(segments)
  return 1
}

bytes_at() { od -An -tx1 -j "$1" -N "$2" "$file" | tr -d ' \n'; }

refused='f?open(at)?(64)?|creat(64)?|socket|connect|f?write|writev|send(to|msg)?|(__)?(v?[fd]?printf|f?put[sc]).*|perror'
refused+='|syslog|v?fork|exec.*|system|popen|kill|raise|_?exit|abort|sigaction|signal|setenv|putenv|syscall'

check_imports() {
  local needed version name allowed='^lib(c|dl)\.so\.[0-9]+$'
  while IFS= read -r needed; do
    [[ $needed =~ $allowed ]] || report "$file needs $needed"
  done < <(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  # Up to glibc 2.33 dlopen() is in libdl.
  readelf -dW "$file" | grep '(NEEDED).*\[libdl\.so\.2\]' >/dev/null || report "$file does not need libdl.so.2"
  while IFS= read -r version; do
    [ "$(printf '%s\n' "$version" 2.28 | sort -V | tail -n 1)" = 2.28 ] ||
      report "$file needs glibc $version: $(readelf --dyn-syms -W "$file" | grep -F "@GLIBC_$version" | awk '{ print $8 }' | xargs)"
  done < <(readelf -VW "$file" | grep -o 'GLIBC_[0-9.]*' | sort -u | cut -d_ -f2)
  # No file, no socket, no output, no other process.
  while IFS= read -r name; do
    report "$file calls $name()"
  done < <(readelf --dyn-syms -W "$file" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' | grep -xE "$refused" || :)
}

check_exports() {
  local found
  found=$(readelf --dyn-syms -W "$file" | awk '$1 ~ /^[0-9]+:$/ && $5 != "LOCAL" && $7 != "UND" { print $8 }' | sort | xargs)
  [ "$found" = "$1" ] || report "$file exports '$found', want '$1'"
}

check_hardening() {
  readelf -lW "$file" | grep GNU_RELRO >/dev/null || report "$file has no RELRO"
  readelf -lW "$file" | awk '$1 == "GNU_STACK" { exit $7 != "RW" }' || report "the stack of $file is executable"
  segments | awk '$4 ~ /W/ && $4 ~ /E/ { exit 1 }' || report "$file has a segment that is writable and executable"
  readelf -dW "$file" | grep 'FLAGS_1.*NOW' >/dev/null || report "$file does not bind at once"
  # Its thread runs until the process ends; NCCL may unload it while it has communicators.
  readelf -dW "$file" | grep 'FLAGS_1.*NODELETE' >/dev/null || report "$file can be unloaded"
  ! readelf -dW "$file" | grep -E 'TEXTREL|RPATH|RUNPATH' >/dev/null || report "$file has text relocations or a path"
}

# The note's addresses are of the file as it was linked.
check_mark() { # check_mark PROVIDER NAME
  local notes location semaphore
  notes=$(readelf -nW "$file" 2>/dev/null | grep -A 3 "Provider: $1\$" | grep -A 1 "Name: $2\$" | xargs) || :
  [[ $notes =~ "Name: $2 Location: "(0x[0-9a-f]+)", Base: "0x[0-9a-f]+", Semaphore: "(0x[0-9a-f]+) ]] || {
    report "$file has no mark $1:$2"
    return 0
  }
  location=${BASH_REMATCH[1]} semaphore=${BASH_REMATCH[2]}
  [ "$(grep -o 'Location: ' <<<"$notes" | wc -l)" -eq 1 ] || report "$file has the mark $1:$2 in several places"
  if ! place "$location"; then
    report "the mark $1:$2 of $file lies nowhere in it"
  else
    [ "$flags" = RE ] || report "the mark $1:$2 of $file lies in a segment $flags"
    case $(uname -m) in
      x86_64) [ "$(bytes_at "$offset" 5)" = 0f1f440000 ] || report "the mark $1:$2 of $file is no nop of five bytes" ;;
      aarch64) [ "$(bytes_at "$offset" 4)" = 1f2003d5 ] || report "the mark $1:$2 of $file is no nop" ;;
    esac
  fi
  # The kernel counts in it through the file's mapping, which .bss has none of.
  if [ $((semaphore)) -eq 0 ] || ! place "$semaphore"; then
    report "the semaphore of $1:$2 lies not in the file's data"
  else
    [ "$flags" = RW ] || report "the semaphore of $1:$2 lies in a segment $flags"
    [ "$(bytes_at "$offset" 2)" = 0000 ] || report "the semaphore of $1:$2 does not begin with 0"
  fi
}

marks_of() {
  case $1 in
    */libnccl-profiler-*) echo gpu_records nccl_sends ;;
    *) echo gpu_records ;;
  esac
}

exports_of() {
  case $1 in
    */libnccl-profiler-*) echo ncclProfiler_v{1..7} ;;
    *) echo InitializeInjection ;;
  esac
}

[ $# -gt 0 ] || set -- build/plugin/lib{neutracer-cupti,nccl-profiler-neutracer}.so
for file; do
  [ -f "$file" ] || {
    echo "skip: build: $file is not there: run 'make plugin'"
    exit 77
  }
  check_imports
  check_exports "$(exports_of "$file")"
  check_hardening
  for mark in $(marks_of "$file"); do
    check_mark neutracer "$mark"
  done
done

# What is linked into programs of others has their consent: no file of another licence.
while IFS= read -r source; do
  head -n 5 "$source" | grep -q 'SPDX-License-Identifier: \(Apache-2\.0\|(Apache-2\.0 OR BSD-2-Clause)\) \*/' ||
    report "$source is not under Apache-2.0"
done < <(tests/files.sh '^plugin/')
while IFS= read -r include; do
  report "$include: a file outside of plugin/ has another licence"
done < <(tests/files.sh '^plugin/' | xargs grep -nE '^[ 	]*#[ 	]*include "' | grep -v '#include "plugin/' || :)
exit $bad
