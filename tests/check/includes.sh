#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Includes run one way: bpf/event.h → agent; common, proto → all but detect; detect includes nothing
# but the C library, itself, uthash and the pure headers of common/; agent and aggregator never meet.
# The first include of x.c is x.h.
set -euo pipefail

# shellcheck disable=SC2016 # the dollars are awk's
tests/files.sh '^(bpf|common|proto|detect|agent|aggregator|cli|plugin)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } | xargs -r awk '
BEGIN {
  # What a room may include of ours.
  ok["bpf"] = "^\"(bpf/|vmlinux[.]h\")"
  ok["common"] = "^\"common/"
  ok["proto"] = "^\"(proto/|common/|neutracer[.]pb-c[.]h\")"
  ok["detect"] = "^\"(detect/|common/(codec|hash|search|sketch)[.]h\")"
  ok["agent"] = "^\"(agent/|common/|proto/|bpf/event[.]h\"|[a-z_]+[.]skel[.]h\")"
  ok["aggregator"] = "^\"(aggregator/|detect/|common/|proto/)"
  ok["cli"] = "^\"(cli/|aggregator/|detect/|common/|proto/)"
  ok["plugin"] = "^\"plugin/"
  # All that a pure step needs: anything else would be a clock, a file or a thread.
  pure = "^<(assert|ctype|errno|float|inttypes|limits|math|stdalign|stdarg|stdbool|stddef|stdint" \
    "|stdio|stdlib|string|uthash|utarray|utlist)[.]h>$"
}
function report(what) {
  print FILENAME ":" FNR ": " what
  bad = 1
}
FNR == 1 {
  room = FILENAME
  sub("/.*", "", room)
  first = 1
  own = FILENAME
  sub("[.]c$", ".h", own)
  has_own = FILENAME ~ /[.]c$/ && FILENAME !~ /[.]bpf[.]c$/ && (getline line < own) >= 0
  close(own)
}
/^[ \t]*#[ \t]*include/ {
  if (!match($0, /["<][^">]*[">]/)) {
    report("an include that is neither \"x\" nor <x>")
    next
  }
  what = substr($0, RSTART, RLENGTH)
  impl = own
  sub("[.]h$", "_impl.h", impl) # what several files of a noun share; it includes x.h
  if (first && has_own && what != "\"" own "\"" && what != "\"" impl "\"")
    report("the first include is \"" own "\", not " what)
  first = 0
  if (what ~ /^"/ && what !~ ok[room])
    report(room " must not include " what)
  else if (FILENAME == "bpf/event.h" && what == "<linux/types.h>")
    next # in user space alone, in place of vmlinux.h
  else if (what ~ /^<linux\// && room == "bpf")
    report("BPF code includes vmlinux.h, never " what)
  else if (what ~ /^</ && what !~ /^<bpf\// && room == "bpf")
    report("BPF code must not include " what)
  else if (what ~ /^<bpf\// && room !~ /^(bpf|agent)$/)
    report(room " must not include " what)
  else if (what ~ /^</ && room == "detect" && what !~ pure &&
      !(FILENAME == "detect/anomaly/refit.c" && what ~ /^<(lapacke|cblas)[.]h>$/))
    report("detect is a pure step and must not include " what)
}
END { exit bad }
'
