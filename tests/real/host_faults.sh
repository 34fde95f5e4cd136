# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# A live job over Open MPI or over Gloo (PyTorch), and faults of one rank's host that come from outside.
# For scripts that have read tests/e2e/lib.sh: bench/host.sh, and tests/e2e/verdicts/test_real_host_*.sh.
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
host_undo=() host_unnet=()
host_drop=build/sim/drop.bpf.o

# What the verdict must be: class, and cause. Either of several causes.
declare -A host_class=([quota]=host [neighbour]=host [loader]='storage|host' [memory]=host [garbage]=host [loss]=network)
declare -A host_cause=([quota]='cpu quota' [neighbour]='cpu contention' [loader]='block device|data loading'
  [memory]='memory pressure' [garbage]='garbage collection' [loss]='tcp loss')

# The library's own, after what is left of a fault and the file.
host_cleanup() {
  local status=$?
  set +e
  host_mend
  host_unnetwork
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
    loss)
      [ -e "$host_drop" ] || { echo "net: there is no $host_drop (make sim)"; return; }
      if ip link add nt-try type veth peer name nt-try2 2>/dev/null; then ip link del nt-try; else echo "net: there is no veth"; fi
      ;;
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
  local ranks options rank pid bind=none hosts=()
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
    [ "$2" != loss ] || hosts=(--host "10.77.0.2,10.77.1.2,10.77.2.2" --mca plm_rsh_agent tests/real/host_rsh.sh
      --mca oob_tcp_if_include 10.77.0.0/16 --mca btl "tcp,self" --mca btl_tcp_if_include eth0)
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --quiet --oversubscribe --bind-to $bind "${hosts[@]}" -np "$ranks" \
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
  host_unnetwork
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
      # Pages that are charged to another group are not under the limit. Those of a new file are.
      host_setting memory.limit_in_bytes memory.max 8388608
      echo "$pid" >"$cgroup/cgroup.procs"
      dd if="$host_file" of="$host_file.new" bs=1M count=48 iflag=direct oflag=direct status=none
      mv "$host_file.new" "$host_file.$2"
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

# ---- the network: a namespace for each rank, joined by this machine ----------------------------------

host_network() { # host_network RANKS: sets NT_NETNS, NT_MASTER, NT_INTERFACE
  local rank forward
  export NT_NETNS=neutracer-$$ NT_MASTER=10.77.0.2 NT_INTERFACE=eth0
  forward=$(cat /proc/sys/net/ipv4/ip_forward)
  echo 1 >/proc/sys/net/ipv4/ip_forward
  host_unnet=("echo $forward >/proc/sys/net/ipv4/ip_forward; unset NT_NETNS NT_MASTER NT_INTERFACE")
  for ((rank = 0; rank < $1; rank++)); do
    ip netns add "$NT_NETNS-$rank"
    host_unnet+=("ip netns del $NT_NETNS-$rank; ip link del nt$rank-$$ 2>/dev/null")
    ip link add "nt$rank-$$" type veth peer name eth0 netns "$NT_NETNS-$rank"
    ip addr add "10.77.$rank.1/24" dev "nt$rank-$$"
    ip link set "nt$rank-$$" up
    ip -n "$NT_NETNS-$rank" addr add "10.77.$rank.2/24" dev eth0
    ip -n "$NT_NETNS-$rank" link set eth0 up
    ip -n "$NT_NETNS-$rank" link set lo up
    ip -n "$NT_NETNS-$rank" route add default via "10.77.$rank.1"
  done
}

host_unnetwork() {
  local step
  for step in "${host_unnet[@]}"; do eval "$step" || :; done
  host_unnet=()
}

# What the rank sends arrives here, and what it receives arrives there: both ways.
host_lose() { # host_lose RANK
  ip link set dev "nt$1-$$" xdpgeneric obj "$host_drop" sec xdp
  ip -n "$NT_NETNS-$1" link set dev eth0 xdpgeneric obj "$host_drop" sec xdp
  host_undo+=("ip link set dev nt$1-$$ xdpgeneric off; ip -n $NT_NETNS-$1 link set dev eth0 xdpgeneric off")
}

# A test of one job: each fault once. A neighbour on the core may have no effect: then nobody is named.
host_test() { # host_test JOB
  local fault rank lacking tried=0
  setup
  for fault in "${host_faults[@]}"; do
    lacking=$(host_lacks "$1" "$fault")
    if [ -n "$lacking" ]; then echo "$1, $fault: left out: $lacking"; continue; fi
    tried=$((tried + 1))
    if [ -z "$agg_pid" ]; then
      start_aggregator --resolve-after 10s
      stay_apart
      start_agent here
    fi
    host_start "$1" "$fault"
    sleep 12
    rank=$(draw ${#host_ranks[@]})
    host_break "$fault" "$rank"
    host_judge "$fault" "$rank" "$([ "$fault" = neighbour ] && echo 30 || echo 90)"
    [ "$right" = yes ] || { [ "$fault" = neighbour ] && [ "$right" = abstained ]; } ||
      fail "$1, $fault: $verdict (rank $rank it was)"
    echo "$1, $fault: $verdict after $seconds s"
    host_mend
    host_end
  done
  [ $tried -gt 0 ] || skip "$lacking"
}
