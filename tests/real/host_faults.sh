# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# A live job over Open MPI or over Gloo (PyTorch), and faults of one rank's host that come from outside.
# For scripts that have read tests/e2e/lib.sh: bench/host.sh, and tests/e2e/verdicts/test_host_*.sh.
#
#   quota      a control group gives the rank a part of a processor
#   neighbour  another process runs on the rank's processor
#   loader     a control group gives the rank few reads a second from the disk
#   memory     a control group gives the rank less memory than the data that it touches
#   garbage    the rank's interpreter collects garbage in each step
#   loss       one in twenty packets from and to the rank is dropped
# shellcheck disable=SC2034,SC2154 # for the scripts; of tests/e2e/lib.sh
host_faults=(quota neighbour loader memory garbage loss)
host_jobs=(mpi gloo)
pause=0.5
host_file='' verdict='' right='' seconds=''
declare -A host_ranks=() # process id, by rank
host_undo=()

# What the verdict must be: class, and cause. Either of several causes.
declare -A host_class=([quota]=host [neighbour]=host [loader]='storage|host' [memory]=host [garbage]=host [loss]=network)
declare -A host_cause=([quota]='cpu quota' [neighbour]='cpu contention' [loader]='block device|data loading'
  [memory]='memory pressure' [garbage]='garbage collection' [loss]='tcp loss')

# The library's own, after what is left of a fault and the file.
host_cleanup() {
  local status=$?
  host_mend
  rm -f "$host_file" "$host_file".[0-9]
  (exit "$status")
  cleanup
}

host_lacks() { # host_lacks JOB FAULT: prints why it cannot run here
  case $1 in
    mpi) command -v mpirun >/dev/null || { echo "mpi: there is no mpirun"; return; } ;;
    gloo) /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || { echo "torch: python3-torch is not installed"; return; } ;;
  esac
  case $2 in
    quota) host_has cpu cpu.cfs_quota_us cpu.max ;;
    memory) host_has memory memory.limit_in_bytes memory.max ;;
    loader) host_has blkio blkio.throttle.read_iops_device io.max ;;
    loss) ip link add neutracer-try type veth peer name neutracer-tri 2>/dev/null && ip link del neutracer-try || echo "net: there is no veth" ;;
  esac
}

# Version 1 has a hierarchy for each controller, version 2 one for all.
host_has() { # host_has CONTROLLER FILE_V1 FILE_V2
  [ -e "/sys/fs/cgroup/$1/$2" ] || [ -e "/sys/fs/cgroup/$1/cgroup.procs" ] || grep -qw "${1/blkio/io}" /sys/fs/cgroup/cgroup.controllers 2>/dev/null ||
    echo "cgroup: there is no controller $1"
}

host_group() { # host_group CONTROLLER: sets cgroup
  local root=/sys/fs/cgroup/$1
  if [ ! -e "$root/cgroup.procs" ]; then
    root=/sys/fs/cgroup
    echo "+${1/blkio/io}" >$root/cgroup.subtree_control
  fi
  cgroup=$root/neutracer-host-$$
  mkdir "$cgroup" 2>/dev/null || :
  host_undo+=("for task in \$(cat $cgroup/cgroup.procs); do echo \$task >$root/cgroup.procs; done; rmdir $cgroup")
}

host_setting() { # host_setting FILE_V1 FILE_V2 VALUE_V1 [VALUE_V2]
  if [ -e "$cgroup/$1" ]; then echo "$3" >"$cgroup/$1"; else echo "${4:-$3}" >"$cgroup/$2"; fi
}

# The work of a step: sleeping, which needs no processor, and computing where that is the fault.
host_options() { # host_options FAULT: sets ranks, options
  ranks=3 options=(--data "$host_file" --garbage "$work/garbage")
  case $1 in
    quota) options+=(--burn-ms 5) ;;
    neighbour) ranks=2 options+=(--burn-ms 20 --sleep-ms 0) ;;
    memory) options+=(--touch "$host_file") ;;
  esac
}

host_steps() {
  kill -0 "$job_pid" 2>/dev/null || fail "the job ended"
  grep -Eq '^(\[.*\]:)?step ' "$job_log"
}

host_start() { # host_start JOB FAULT: starts the job and waits for its steps. Sets host_ranks
  local ranks options rank pid bind=none
  if [ -z "$host_file" ]; then
    host_file=/var/tmp/neutracer-host-$$
    trap host_cleanup EXIT
    head -c 268435456 /dev/zero | tr '\0' '\7' >"$host_file"
    sync "$host_file"
    for rank in 0 1 2; do head -c 50331648 "$host_file" >"$host_file.$rank"; done
    sync "$host_file".*
  fi
  host_options "$2"
  job_log=$work/log/$1-$(($(find "$work/log" -name "$1-*" | wc -l) + 1)).log
  : >"$job_log"
  rm -f "$work"/garbage.*
  [ "$2" != loss ] || host_network "$ranks"
  if [ "$1" = mpi ]; then
    [ "$ranks" -gt 2 ] || bind=core
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --quiet --oversubscribe --bind-to $bind -np "$ranks" \
      --mca btl "$([ "$2" = loss ] && echo tcp,self || echo vader,self)" --mca btl_tcp_if_exclude lo0 \
      tests/real/host_rank.sh mpi "${options[@]}" >"$job_log" 2>&1 </dev/null &
  else
    tests/real/host_launch.sh "$ranks" "$(free_port)" "${options[@]}" >"$job_log" 2>&1 </dev/null &
  fi
  job_pid=$!
  wait_until 90 "$1 to step" host_steps || fail "$1 does not run: $(tail -3 "$job_log")"
  seen "$ranks"
  host_ranks=()
  while read -r rank pid; do host_ranks[$rank]=$pid; done < <(ranks | jq -r '.[] | "\(.rank) \(.pid)"')
  [ "${#host_ranks[@]}" -eq "$ranks" ] || fail "$1: the ranks are $(ranks)"
}

host_end() {
  [ -z "$job_pid" ] || stop "$job_pid"
  job_pid=
}

host_break() { # host_break FAULT RANK
  local pid=${host_ranks[$2]} device core
  host_undo=()
  case $1 in
    quota)
      host_group cpu
      host_setting cpu.cfs_quota_us cpu.max 3000 "3000 100000"
      echo "$pid" >"$cgroup/cgroup.procs"
      ;;
    neighbour)
      core=$(taskset -cp "$pid" | sed 's/.*: //; s/[,-].*//')
      nice -n "${NT_NICE:-0}" taskset -c "$core" bash -c 'while :; do :; done' &
      host_undo+=("kill $!; wait $! 2>/dev/null || :")
      children+=("$!")
      ;;
    loader)
      device=$(lsblk -no MAJ:MIN "$(df --output=source "$host_file" | tail -1)" 2>/dev/null | head -1 | tr -d ' ')
      [ -n "$device" ] || device=$(printf '%d:%d' 0x"$(stat -c %D "$host_file" | sed 's/..$//; s/^$/0/')" 0x"$(stat -c %D "$host_file" | sed 's/.*\(..\)$/\1/')")
      host_group blkio
      host_setting blkio.throttle.read_iops_device io.max "$device 16" "$device riops=16"
      echo "$pid" >"$cgroup/cgroup.procs"
      ;;
    memory)
      host_group memory
      # Pages that are charged to another group are not under the limit: they are dropped until it reads
      # them anew. It has the file mapped for a part of the time, and pages that are mapped stay.
      host_setting memory.limit_in_bytes memory.max 16777216
      echo "$pid" >"$cgroup/cgroup.procs"
      for ((try = 0; try < 20; try++)); do dd if="$host_file.$2" iflag=nocache count=0 status=none; done
      ;;
    garbage)
      : >"$work/garbage.$2"
      host_undo+=("rm -f $work/garbage.$2")
      ;;
    loss)
      host_lose "$2"
      ;;
  esac
}

host_mend() {
  local step
  for step in "${host_undo[@]}"; do eval "$step" || :; done
  host_undo=()
}

host_is_named() {
  verdict=$(open_incidents | jq -r '[.[] | select(.severity != "info") |
    "\(.culprits | map("\(.kind) \(.rank // .node // .name // "")") | join(" and ")), \(.class), \(.cause // "-")"] | sort | join("; ")') &&
    [ -n "$verdict" ]
}

host_is_right() { # host_is_right FAULT RANK
  host_is_named || return 1
  case $1 in
    loss) [[ $verdict =~ ^[^\;]*,\ (${host_class[$1]}),\ (${host_cause[$1]})$ ]] ;;
    *) [[ $verdict =~ ^rank\ $2,\ (${host_class[$1]}),\ (${host_cause[$1]})$ ]] ;;
  esac
}

# Sets verdict, seconds, and right: yes, abstained (nobody is named), or no. The cause may follow the name.
host_judge() { # host_judge FAULT RANK SECONDS
  local begin
  begin=$(now_ms)
  right=no
  if wait_until "$3" "the right verdict" host_is_right "$1" "$2" 2>/dev/null; then
    sleep 3
    if host_is_right "$1" "$2"; then right=yes; fi
  elif ! host_is_named; then
    right=abstained
    verdict="nobody is named; notes: $(open_incidents | jq -r 'map(.summary) | join("; ")')"
  fi
  seconds=$(awk -v ms=$(($(now_ms) - begin)) 'BEGIN { printf "%.1f", ms / 1000 }')
}
