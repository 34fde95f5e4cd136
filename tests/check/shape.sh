#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The shape of the tree and of the programs: which directories there are, what each program links,
# that the BPF objects come from clang, that the programs are hardened.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

# ---- the tree ------------------------------------------------------------------------------------

rooms='agent aggregator bench bpf cli common control deploy detect docs engine plugin proto tests'
for room in agent aggregator bench bpf cli common control detect docs engine proto tests; do
  [ -d "$room" ] || report "$room/ is missing"
done
while IFS= read -r directory; do
  case " $rooms .ci .git .github build " in
    *" $directory "*) ;;
    *) report "$directory/ is no room of this house: $rooms" ;;
  esac
done < <(find . -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -v '^\.git$')
while IFS= read -r directory; do
  report "$directory is empty: a directory comes with its contents"
done < <(find . \( -path ./.git -o -path ./build \) -prune -o -type d -empty -print)
for file in Makefile README.md LICENSE CONTRIBUTING.md .clang-format .clang-tidy .editorconfig \
  proto/neutracer.proto bpf/event.h docs/api/openapi.yaml; do
  [ -f "$file" ] || report "$file is missing"
done

# Consider a split from 400 lines on; 600 is the limit.
while read -r lines file; do
  [ "$lines" -le 600 ] || report "$file has $lines lines: split it"
done < <(tests/files.sh '^(agent|aggregator|bench|bpf|cli|common|detect|engine|plugin|proto|tests)/.*\.[ch]$' |
  xargs -r wc -l | grep -v ' total$')

# A folder of source files is read at a glance.
while read -r entries directory; do
  [ "$entries" -le 40 ] || report "$directory/ has $entries entries: 40 at most, split it"
done < <(tests/files.sh | awk '
  # Counts each entry of each directory once.
  {
    path = $0
    while (match(path, "/[^/]*$")) {
      directory = substr(path, 1, RSTART - 1)
      if (!seen[path]++) entries[directory]++
      path = directory
    }
  }
  /\.([ch]|sh|py)$/ { sub("/[^/]*$", ""); source[$0] }
  END { for (directory in source) print entries[directory] + 0, directory }')

# ---- what was built ------------------------------------------------------------------------------

bin=${NT_BIN:-build/release/bin} gen=build/gen

# links PROGRAM LIBRARY...: it needs each of them.
links() {
  local program=$bin/$1 needed library
  [ -x "$program" ] || {
    report "$program is not built"
    return 0
  }
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  shift
  for library; do
    grep -q "^$library\.so" <<<"$needed" || report "$program does not link $library"
  done
}

# never PROGRAM LIBRARY...: it must not need them.
never() {
  local program=$bin/$1 library
  [ -x "$program" ] || return 0
  shift
  for library; do
    ! readelf -d "$program" | grep -q "(NEEDED).*\[$library\.so" || report "$program links $library"
  done
}

links neutracer-agent libbpf libprotobuf-c librdkafka libmicrohttpd
links neutracer-aggregator libprotobuf-c librdkafka libmicrohttpd libjansson libsqlite3 libcurl
links neutracer libjansson libcurl librdkafka libarchive
never neutracer-aggregator libbpf libelf
never neutracer libbpf

for name in neutracer-agent neutracer-aggregator neutracer; do
  program=$bin/$name
  [ -x "$program" ] || continue
  readelf -h "$program" | grep 'Type:.*DYN' >/dev/null || report "$program is not position-independent"
  readelf -lW "$program" | grep GNU_RELRO >/dev/null || report "$program has no RELRO"
  readelf -dW "$program" | grep 'BIND_NOW\|Flags:.*NOW' >/dev/null || report "$program does not bind at start"
  readelf -sW "$program" | grep __stack_chk_fail >/dev/null || report "$program has no stack protector"
done

objects=0
for source in bpf/*.bpf.c; do
  object=$gen/$(basename "$source" .c).o
  [ -f "$object" ] || {
    report "$object is not built"
    continue
  }
  objects=$((objects + 1))
  readelf -hW "$object" | grep 'Machine:.*BPF' >/dev/null || report "$object is no BPF object"
  # grep must read to the end, or readelf dies of a closed pipe and pipefail says so.
  readelf --debug-dump=info "$object" 2>/dev/null | grep 'DW_AT_producer.*clang' >/dev/null ||
    report "$object was not made by clang"
  readelf -p license "$object" 2>/dev/null | grep 'Dual BSD/GPL' >/dev/null || report "$object is not licensed Dual BSD/GPL"
  readelf -SW "$object" | grep ' \.BTF ' >/dev/null || report "$object has no BTF"
done
[ "$objects" -gt 0 ] || report "no BPF object"
exit $bad
