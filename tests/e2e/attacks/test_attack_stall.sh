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

trap_is_set() { # trap_is_set MODE [OPTION...]
  mkdir "$work/$1"
  attack_starts fuse_stall --mode "$1" --dir "$work/$1" --seconds 120 "${@:2}"
  wait_until 40 "the trap" attack_said stalled || fail "the trap is not set: $(cat "$attack_log")"
}

# One after the other, so that the second is found behind the first, and all stay.
watch_begin
for mode in mpi nccl memory environ; do
  trap_is_set "$mode" --processes 3
done
sleep 12
slow_rank_is_named "while memory stalls"
stop_attacks
watch_end "memory that stalls"

watch_begin
trap_is_set library
sleep 12
stop_attacks
watch_end "a library that stalls"

watch_begin
mkdir "$work/link"
mknod "$work/device" c 1 3
chmod 666 "$work/device"
mkfifo -m 666 "$work/pipe"
for target in device pipe; do
  attack_runs device_link --dir "$work/link" --target "$work/$target" --seconds 4
  ! attack_said opened || complain "the $target that a library's path leads to was opened"
  attack_said watched || complain "an opening of the $target would not have been seen"
done
watch_end "paths that lead elsewhere"
healthy_job_is_complete "stalls"
all_held
