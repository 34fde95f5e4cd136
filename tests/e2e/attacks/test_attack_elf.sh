#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Programs that are dear to parse, executed by any user: 5 MB of which each symbol's name is the rest
# of the file, and 65 MB of symbols. In the watched cgroup and outside of it.
set -euo pipefail
# shellcheck source=tests/attack/watch.sh
. tests/attack/watch.sh

setup_attack
healthy_job
watch_begin
attack_runs elf_run --file "$work/anyone/tables" --kind tables --bytes 65000000 --times 2 --seconds 3
watch_end "65 MB of symbols"

watch_begin
attack_runs elf_run --file "$work/anyone/names" --bytes 5000000 --times 3 --seconds 3
# Not in the cgroup that the agent watches: none of its business.
echo $$ >"${apart%/*}/cgroup.procs"
"$work/attack/elf_run" --file "$work/anyone/outside" --bytes 5000000 --times 2 --seconds 2 >"$work/out/outside" ||
  fail "the program was not executed: $(cat "$work/out/outside")"
echo $$ >"$apart/cgroup.procs"
sleep 8 # the last may still be read
watch_end "names without an end"
slow_rank_is_named "after dear programs"
healthy_job_is_complete "dear programs"
all_held
