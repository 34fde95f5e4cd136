#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Processes whose memory, environment or libraries cannot be read without waiting for a server that
# does not answer, and paths that lead to devices: nothing waits, nothing but a regular file is opened.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

setup_attack
[ -c /dev/fuse ] || skip "bpf: there is no FUSE"
healthy_job
for mode in nccl mpi memory environ library; do
  watch_begin
  mkdir "$work/$mode"
  attack_starts fuse_stall --mode "$mode" --dir "$work/$mode" --seconds 60
  wait_until 10 "the trap" attack_said stalled || fail "the trap is not set: $(cat "$attack_log")"
  sleep 14
  [ "$mode" != nccl ] || slow_rank_is_named "while '$mode' stalls"
  stop "$attack_pid"
  attack_said waiting || fail "the attacker failed: $(cat "$attack_log")"
  watch_end "stall of '$mode'"
done

watch_begin
mkdir "$work/link"
mknod "$work/device" c 1 3
chmod 666 "$work/device"
mkfifo -m 666 "$work/pipe"
for target in device pipe; do
  attack_runs device_link --dir "$work/link" --target "$work/$target" --seconds 4
  ! attack_said opened || complain "the $target that a library's path leads to was opened"
done
watch_end "paths that lead elsewhere"
healthy_job_is_complete "stalls"
all_held
