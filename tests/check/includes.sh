#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Includes run downwards. A room is a folder (agent/steps; what lies in agent/ itself is the room agent).
# Each may include itself and the rooms that its line names, and of its own top level the rooms before it.
# common/base and detect/ are pure: no clock, file or thread. The first include of x.c is x.h.
set -euo pipefail

# Lowest first. Behind the colon: the other top levels that a room may include.
rooms='
plugin:
plugin/cupti:
plugin/nccl:
bpf: plugin/gpu_record.h
common/base:
common/system:
common/options:
common/bus:
common/http:
common/kube:
common:
proto: common
control: proto common
detect/thresholds: common/base
detect/math: common/base
detect/anomaly: common/base
detect/model: common/base
detect/baseline: common/base
detect/incidents: common/base
detect/rules: common/base
detect: common/base
agent/host: common proto bpf/event.h bpf/host_event.h plugin/gpu_record.h
agent/node: common proto bpf/event.h plugin/gpu_record.h
agent/identity: common proto bpf/event.h plugin/gpu_record.h
agent/elf: common proto bpf/event.h plugin/gpu_record.h
agent/system: common proto bpf/event.h bpf/host_event.h plugin/gpu_record.h
agent/probes: common proto bpf/event.h plugin/gpu_record.h
agent/stack: common proto bpf/event.h plugin/gpu_record.h
agent/rdma: common proto bpf/event.h plugin/gpu_record.h
agent/socket: common proto bpf/socket_record.h
agent/governor: common proto bpf/event.h plugin/gpu_record.h
agent/discover: common proto bpf/event.h plugin/gpu_record.h
agent/profile: control common proto bpf/event.h plugin/gpu_record.h
agent/gpu: common proto bpf/event.h plugin/gpu_record.h
agent/ras: common proto bpf/event.h plugin/gpu_record.h
agent/heap: common proto bpf/event.h plugin/gpu_record.h
agent/steps: control common proto bpf/event.h bpf/host_event.h plugin/gpu_record.h
agent/tracker: control common proto bpf/event.h bpf/host_event.h plugin/gpu_record.h
agent/publish: control common proto bpf/event.h plugin/gpu_record.h
agent: control common proto bpf/event.h bpf/host_event.h plugin/gpu_record.h
engine/agents: detect proto common
engine/host: detect proto common
engine/gpu: detect proto common
engine/stacks: detect proto common
engine/frame: detect proto common
engine/links: detect proto common
engine/nodes: detect proto common
engine/incidents: detect proto common
engine/timeline: detect proto common
engine: detect proto common
aggregator/store: engine detect proto common
aggregator/notify: engine detect proto common
aggregator/group: control engine detect proto common
aggregator/page: common
aggregator/api: control engine detect proto common
aggregator: control engine detect proto common
cli/readers: engine detect proto common
cli/flight: engine detect proto common
cli/kineto: engine detect proto common
cli/systrace: engine detect proto common
cli/input: engine detect proto common
cli/replay: engine detect proto common
cli/report: engine detect proto common
cli/profile: engine detect proto common
cli/anomaly: engine detect proto common
cli/term: common
cli/live: engine detect proto common
cli/top: engine detect proto common
cli: engine detect proto common
'

# shellcheck disable=SC2016 # the dollars are awk's
tests/files.sh '^(bpf|common|proto|detect|engine|agent|aggregator|cli|plugin)/.*\.[ch]$' |
  { grep -v '^bpf/vmlinux.h$' || :; } | xargs -r awk -v rooms="$rooms" '
function room_of(path,    part, n) {
  n = split(path, part, "/")
  return n > 2 ? part[1] "/" part[2] : part[1]
}
function top_of(path) {
  sub("/.*", "", path)
  return path
}
BEGIN {
  n = split(rooms, line, "\n")
  for (i = 1; i <= n; i++) {
    split(line[i], part, ":")
    if (part[1] != "") {
      rank[part[1]] = ++count
      others[part[1]] = part[2] " "
    }
  }
  # All that a pure step needs: anything else would be a clock, a file or a thread.
  pure = "^<(assert|ctype|errno|float|inttypes|limits|math|stdalign|stdarg|stdbool|stddef|stdint" \
    "|stdio|stdlib|string|uthash|utarray|utlist|locale|unistd)[.]h>$"
}
function report(what) {
  print FILENAME ":" FNR ": " what
  bad = 1
}
# May this room include that path?
function may(path,    to, other, k, m) {
  to = room_of(path)
  if (path == "detect/thresholds/thresholds.def")
    return top == "detect"
  if (path !~ "/")
    return top == "agent" && path ~ /[.]skel[.]h$/ || top == "proto" && path == "neutracer.pb-c.h"
  if (top_of(path) == top)
    return (to in rank) && rank[to] <= rank[room]
  m = split(others[room], other, " ")
  for (k = 1; k <= m; k++)
    if (path == other[k] || index(path, other[k] "/") == 1)
      return 1
  return 0
}
FNR == 1 {
  room = room_of(FILENAME)
  top = top_of(FILENAME)
  if (!(room in rank))
    report("the room " room " is not in the list of tests/check/includes.sh")
  first = 1
  own = FILENAME
  sub("[.]c$", ".h", own)
  has_own = FILENAME ~ /[.]c$/ && FILENAME !~ /[.]bpf[.]c$/ && (getline line_of_own < own) >= 0
  close(own)
}
/^[ \t]*#[ \t]*include/ {
  if (!match($0, /["<][^">]*[">]/)) {
    report("an include that is neither \"x\" nor <x>")
    next
  }
  what = substr($0, RSTART, RLENGTH)
  path = substr($0, RSTART + 1, RLENGTH - 2)
  impl = own
  sub("[.]h$", "_impl.h", impl) # what several files of a noun share; it includes x.h
  if (first && has_own && path != own && path != impl)
    report("the first include is \"" own "\", not " what)
  first = 0
  if (what ~ /^"/ && !(top == "bpf" && path == "vmlinux.h") && !may(path))
    report(room " must not include " what)
  else if (FILENAME == "bpf/event.h" && what == "<linux/types.h>")
    next # in user space alone, in place of vmlinux.h
  else if (what ~ /^<linux\// && top == "bpf")
    report("BPF code includes vmlinux.h, never " what)
  else if (what ~ /^</ && what !~ /^<bpf\// && top == "bpf")
    report("BPF code must not include " what)
  else if (what ~ /^<bpf\// && top !~ /^(bpf|agent)$/)
    report(top " must not include " what)
  else if (FILENAME == "detect/anomaly/refit.c" && what == "<lapacke.h>")
    next # the only numerical library, and only for refits
  else if (what ~ /^</ && top == "detect" && what !~ pure)
    report("detect is a pure step and must not include " what)
  else if (what ~ /^</ && room == "common/base" && what !~ pure)
    report("common/base is pure and must not include " what)
}
END { exit bad }
'
