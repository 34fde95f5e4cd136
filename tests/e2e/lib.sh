# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Library of the end-to-end scripts and the demo: starts and stops the programs, waits for
# conditions, queries the REST API. One temporary directory holds all files; all processes end with
# the script.
#
# The job's control files (faults, truth) lie in $control. Agent and aggregator run in a mount
# namespace of their own in which $control is an empty directory: they cannot read the truth.
#
#   NT_KEEP=1   keep the directory and print its path
#   NT_APART=1  keep to a cgroup, so that other scripts can run in parallel: agents then ignore their jobs
#   NT_BIN      the directory of the programs (build/release/bin)
#   NT_LEVEL    the level of all ranks (0)
set -euo pipefail

bin=${NT_BIN:-build/release/bin}
sim=build/sim
work='' control='' port='' agg_pid='' job_pid='' job_log='' job_id='' job_name=''
declare -A agent_pid=()
children=() cgroups=() apart='' ended=0

skip() {
  echo "skip: $1"
  exit 77
}

fail() {
  [ -z "$work" ] || tail -n 15 "$work"/log/*.log >&2 || :
  # Last: the test runner shows the end of the output.
  echo "FAILED: $*" >&2
  exit 1
}

need() { # need PROGRAM...
  local program
  for program; do
    [ -x "$program" ] || command -v "$program" >/dev/null || fail "there is no '$program' (make all sim)"
  done
}

setup() {
  [ "$(id -u)" -eq 0 ] || skip "bpf: needs root"
  [ -r /sys/kernel/btf/vmlinux ] || skip "bpf: this kernel has no type information"
  need "$bin/neutracer-agent" "$bin/neutracer-aggregator" "$bin/neutracer" "$sim/train" \
    "$sim/launch" curl jq unshare nsenter
  work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
  control=$work/control
  mkdir "$control" "$work/log" "$work/out" "$work/spool"
  : >"$control/faults"
  trap cleanup EXIT
  trap 'exit 130' INT TERM HUP
  [ -z "${NT_APART:-}" ] || stay_apart
}

# Reaps, so that no "Terminated" is printed.
# shellcheck disable=SC2034 # callers may use ended
stop() { # stop PID [SIGNAL]: sets ended, its exit status
  ended=0
  [ -n "${1:-}" ] || return 0
  kill "-${2:-TERM}" "$1" 2>/dev/null || :
  ( # SIGKILL after 10 s
    for ((i = 0; i < 100; i++)); do
      kill -0 "$1" 2>/dev/null || exit 0
      sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null
  ) &
  local watcher=$!
  wait "$1" 2>/dev/null || ended=$?
  # Not TERM: a newly forked shell still has our traps, and would clean up.
  kill -KILL "$watcher" 2>/dev/null || :
  wait "$watcher" 2>/dev/null || :
}

cleanup() {
  local status=$? pid
  trap '' INT TERM HUP
  trap - EXIT
  set +e
  stop "$job_pid"
  for pid in "${agent_pid[@]}" $agg_pid; do stop "$pid"; done
  agent_pid=() agg_pid=''
  for pid in "${children[@]}"; do stop "$pid"; done
  [ -z "$apart" ] || echo $$ >"${apart%/*}/cgroup.procs"
  for pid in "${cgroups[@]}"; do
    wait_until 40 "the cgroup to empty" rmdir "$pid" 2>/dev/null
  done
  # Sanitized programs report errors and leaks at their exit.
  if [ -n "$work" ] && grep -A 30 -e 'ERROR: [A-Z][A-Za-z]*Sanitizer' -e 'runtime error: ' "$work"/log/*.log >&2; then
    echo "FAILED: a sanitizer found something" >&2
    status=1
  fi
  if [ -n "$work" ]; then
    if [ -n "${NT_KEEP:-}" ]; then
      echo "left: $work"
    else
      rm -rf "$work"
    fi
  fi
  exit "$status"
}

# Fails at once if a program has ended, instead of at a timeout.
check_alive() {
  local pid
  for pid in $agg_pid "${agent_pid[@]}"; do
    kill -0 "$pid" 2>/dev/null || fail "process $pid has ended: agent or aggregator"
  done
}

now_ms() { date +%s%3N; }

# wait_until SECONDS WHAT COMMAND...: 1 when the time is over. A test whose job needs all processors sets a
# longer pause between two tries: each costs milliseconds.
pause=0.1
starting=20 # seconds that a program may take to start; an emulated machine needs more
wait_until() {
  local end=$(($(now_ms) + $1 * 1000)) what=$2
  shift 2
  until "$@"; do
    check_alive
    if [ "$(now_ms)" -ge "$end" ]; then
      echo "gave up waiting: $what" >&2
      return 1
    fi
    sleep "$pause"
  done
}

# Below the ports of brokers (tests/kafka/ports.sh) and the kernel's range of ephemeral ports.
free_port() {
  local number
  for ((i = 0; i < 100; i++)); do
    number=$((20000 + SRANDOM % 5000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$number") 2>/dev/null; then
      echo "$number"
      return
    fi
  done
  fail "no port is free"
}

# hidden PROGRAM ARG...: executes the program in a mount namespace without the control files.
hidden() {
  # shellcheck disable=SC2016 # for the inner shell
  exec unshare --mount --propagation private bash -c \
    'mount -t tmpfs -o ro,size=4k none "$0" && exec "$@"' "$control" "$@"
}

# Checks that the process has no control files, in its mount namespace and under its root: in a
# chroot, the namespace's own root is the machine's, which has no $control at all.
blind() { # blind PID
  local names
  names=$(nsenter --target "$1" --mount --root ls -A "$control") && [ -z "$names" ]
}

# shellcheck disable=SC2120 # options may be none
start_aggregator() { # start_aggregator [OPTION...]
  port=${port:-$(free_port)}
  (hidden "$bin/neutracer-aggregator" --bus "spool:$work/spool" --listen "127.0.0.1:$port" \
    --token-file "$work/token" --store "$work/store.db" "$@" >>"$work/log/aggregator.log" 2>&1) &
  agg_pid=$!
  wait_until "$starting" "the aggregator to be ready" ready || fail "the aggregator does not come up"
  blind "$agg_pid" || fail "the aggregator can see the control files"
}

ready() {
  kill -0 "$agg_pid" 2>/dev/null || fail "the aggregator ended"
  curl -sf -o /dev/null "http://127.0.0.1:$port/readyz"
}

start_agent() { # start_agent NAME [OPTION...]
  local name=$1
  shift
  rm -f "$work/agent-$name.prom"
  (hidden "$bin/neutracer-agent" --bus "spool:$work/spool" --node "$name" ${apart:+--cgroup "$apart"} \
    ${NT_LEVEL:+--level "$NT_LEVEL"} --metrics-file "$work/agent-$name.prom" "$@" >>"$work/log/agent-$name.log" 2>&1) &
  agent_pid[$name]=$!
  wait_until "$starting" "agent $name to watch" test -s "$work/agent-$name.prom" || fail "agent $name does not come up"
  kill -0 "${agent_pid[$name]}" 2>/dev/null || fail "agent $name ended"
  blind "${agent_pid[$name]}" || fail "agent $name can see the control files"
}

# Sets library, the stand-in for NVML, whose answers are in the file $SIM_NVML.
use_nvml() {
  library=$PWD/$sim/lib/libnvidia-ml.so.1
  [ -e "$library" ] || fail "there is no '$library' (make sim)"
  export SIM_NVML=$work/nvml
}

stop_agent() { # stop_agent NAME [SIGNAL]
  stop "${agent_pid[$1]}" "${2:-TERM}"
  unset "agent_pid[$1]"
}

# start_job train|mpi|mpich|halo|verbs|gloo RANKS [OPTION...] [-- LAUNCHER OPTION...]: options of the program.
start_job() {
  local kind=$1 ranks=$2 options=() launcher=()
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  launcher=("$@")
  job_log=$work/log/job-$(($(find "$work/log" -name 'job-*' | wc -l) + 1)).log
  : >"$job_log" # the job may open it only after we look for the first step
  rm -rf "$control/truth"
  mkdir "$control/truth"
  options+=(--faults "$control/faults" --out "$control/truth")
  case $kind in
    train)
      "$sim/launch" -n "$ranks" --port "$(free_port)" --pids "$control/pids" "${launcher[@]}" -- "$sim/train" --seconds 3600 \
        "${options[@]}" >"$job_log" 2>&1 &
      ;;
    gloo)
      "$sim/launch" -n "$ranks" --plain --port "$(free_port)" --pids "$control/pids" "${launcher[@]}" -- \
        tests/sim/ddp_gloo.py --seconds 3600 "${options[@]}" >"$job_log" 2>&1 &
      ;;
    mpi | halo | verbs)
      local program=$sim/mpi_$kind
      [ "$kind" != mpi ] || program=$sim/mpi_train
      # mpirun starts its ranks in a session of their own, and ends them on SIGTERM.
      env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun --oversubscribe --bind-to none --quiet -np "$ranks" "${launcher[@]}" "$program" \
        --seconds 3600 "${options[@]}" >"$job_log" 2>&1 &
      ;;
    mpich)
      mpirun.mpich -np "$ranks" "${launcher[@]}" "$sim/mpich_train" --seconds 3600 "${options[@]}" >"$job_log" 2>&1 &
      ;;
    *) fail "no kind of job '$kind'" ;;
  esac
  job_pid=$!
  wait_until $((2 * starting)) "the job to step" job_steps || fail "the job does not run"
}

job_steps() {
  kill -0 "$job_pid" 2>/dev/null || fail "the job ended"
  grep -q '^step ' "$job_log"
}

job_runs() { kill -0 "$job_pid" 2>/dev/null; }
job_is_over() { ! job_runs; }

fault() { # fault LINE...: replaces the faults; none: healthy
  printf '%s\n' "$@" >"$control/.faults"
  mv "$control/.faults" "$control/faults"
}

# Ends the job cleanly and returns its status.
end_job() {
  local status=0
  fault 'stop all'
  wait_until 30 "the job to end" job_is_over || fail "the job does not end"
  wait "$job_pid" || status=$?
  job_pid=
  fault
  return "$status"
}

kill_job() { # kill_job SIGNAL
  stop "$job_pid" "$1"
  job_pid=
  fault
}

api() { # api PATH: the body of the reply
  curl -sf --max-time 10 -H "Authorization: Bearer $(head -n 1 "$work/token" | cut -d' ' -f1)" \
    "http://127.0.0.1:$port$1"
}

# Everything below concerns only the job started last: the machine may have others.
incidents() { api "/api/v1/incidents?job=$job_name" | jq -c '.items'; }
open_incidents() { api "/api/v1/incidents?state=firing&job=$job_name" | jq -c '.items'; }
slow_ranks() { api "/api/v1/slow-ranks?job=$job_name" | jq -c '.items'; }
ranks() { api "/api/v1/jobs/$job_id/ranks?limit=1000" | jq -c '.items'; }

children_of() { cat "/proc/$1/task/$1/children" 2>/dev/null; }

# The processes of the job's ranks. Between them and the launcher, MPICH has a proxy process, and Open MPI one on each
# further host, with the shell that starts it.
ranks_of() { # ranks_of LAUNCHER_PID
  local child
  for child in $(children_of "$1"); do
    case $(cat "/proc/$child/comm" 2>/dev/null) in
      hydra_pmi_proxy | orted | host_rsh.sh) ranks_of "$child" ;;
      *) printf '%s ' "$child" ;;
    esac
  done
}

# Whether the API lists exactly the processes of the job's ranks. Sets job_id and job_name.
job_is_seen() { # job_is_seen RANKS
  local id pids
  pids=$(ranks_of "$job_pid" | tr ' ' '\n' | sort -n | grep .) || return 1
  for id in $(api /api/v1/jobs | jq -r ".items[] | select(.state == \"running\" and .live == $1) | .id"); do
    [ "$(api "/api/v1/jobs/$id/ranks?limit=1000" | jq '.items[].pid' | sort -nu)" = "$pids" ] || continue
    job_id=$id
    job_name=$(api "/api/v1/jobs/$id" | jq -r '.name')
    return 0
  done
  return 1
}

# has_incident FILTER: whether the jq filter is true for some incident.
has_incident() {
  [[ "$(incidents | jq "[.[] | select($1)] | length")" -ge 1 ]]
}

# no_incident: fails on any class and state. A note that all ranks became slower is allowed: other
# virtual machines of the host can cause it, and it has no culprit.
no_incident() {
  local found
  found=$(incidents | jq -c '[.[] | select(.class != "job-wide" or .severity != "info" or .culprits != [])]')
  [ "$found" = '[]' ] || fail "there is an incident: $found"
}

# expect SECONDS WHAT CLASS RANK...: waits for a firing incident of this class with exactly these
# ranks as culprits, and no other incident. Prints the delay.
expect() {
  local limit=$1 what=$2 class=$3 begin wanted found
  shift 3
  begin=$(now_ms)
  wanted=$(jq -cn --arg class "$class" '[[$class, ($ARGS.positional | map(["rank", tonumber]))]]' --args "$@")
  wait_until "$limit" "a verdict on $what" has_incident '.state == "firing" and .severity != "info"' ||
    fail "$what: no verdict within $limit s"
  begin=$(($(now_ms) - begin))
  found=$(open_incidents)
  [ "$(jq -c '[.[] | select(.severity != "info") | [.class, (.culprits | map([.kind, .rank]) | sort)]]' <<<"$found")" = "$wanted" ] ||
    fail "$what: wanted $wanted, found $found"
  echo "$what: $class, rank $* after $begin ms"
}

# Open incidents with culprits. A busy host slows all ranks down, which adds a note.
accusations() { open_incidents | jq -c '[.[] | select(.class != "job-wide" or .severity != "info" or .culprits != [])]'; }

none_open() { [ "$(open_incidents | jq '[.[] | select(.severity != "info")] | length')" = 0 ]; }

# Removes the faults and waits until all incidents are resolved.
heal() {
  fault
  wait_until 90 "the incident to resolve" none_open || fail "not resolved: $(open_incidents)"
}

# quiet SECONDS: no new incident in this time.
quiet() {
  local end=$((SECONDS + $1)) found old
  old=$(incidents | jq -c '[.[] | select(.state == "resolved") | .id]')
  while [ $SECONDS -lt $end ]; do
    found=$(incidents | jq -c --argjson old "$old" '[.[] | select(.severity != "info" and (.id | IN($old[]) | not))]')
    [ "$found" = '[]' ] || fail "somebody is accused: $found"
    sleep 0.5
  done
}

# seen RANKS: waits until all ranks of the job are listed.
seen() {
  wait_until 60 "the ranks to be seen" job_is_seen "$1" || fail "the ranks are not seen: $(api /api/v1/jobs)"
}

# Makes a cgroup in some hierarchy, removed at the end.
make_cgroup() { # make_cgroup NAME: sets cgroup
  local root
  for root in /sys/fs/cgroup/pids /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [ -e "$root/cgroup.procs" ] || continue
    cgroup=$root/neutracer-test-$$-$1
    mkdir "$cgroup" 2>/dev/null && cgroups+=("$cgroup") && return
  done
  skip "bpf: no hierarchy of cgroups can be written"
}

# Moves this script, and all processes it starts from here on, to a cgroup. An agent started later watches
# only that one, unless it is given another: it then ignores other jobs of the machine.
stay_apart() { # sets apart
  [ -z "$apart" ] || return 0
  make_cgroup apart
  apart=$cgroup
  echo $$ >"$apart/cgroup.procs"
}

draw() { # draw N: a number from 0 to N-1
  echo $((SRANDOM % $1))
}
