# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# Programs that were not written for tests, two ranks each, and what is done to one rank from outside.
# For scripts that have read tests/e2e/lib.sh: bench/real.sh, and tests/e2e/verdicts/test_real_*.sh.
#
#   lammps   Debian's package, on Open MPI
#   mpich    a stencil code, on Debian's MPICH
#   mpi4py   mpi4py 4 with the mpich of PyPI
#   ddp      DistributedDataParallel over Gloo: Debian's PyTorch
#   fsdp     fully_shard over Gloo: the PyTorch of tests/long/torch.txt
# shellcheck disable=SC2034,SC2154 # for the scripts; of tests/e2e/lib.sh
real_programs=(lammps mpich mpi4py ddp fsdp)
real_cases=(healthy held stopped killed)
pause=1 # two ranks need both processors
real_cache=${NT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/neutracer}
declare -A real_ranks=() # process id, by rank
verdict='' seconds='' right=''

# Prints why the program cannot run here. Installs it, if it is not a package of Debian.
real_lacks() { # real_lacks PROGRAM
  case $1 in
    lammps)
      command -v lmp >/dev/null && command -v mpirun >/dev/null || echo "mpi: there is no lmp or mpirun"
      ;;
    mpich) [ -x "$sim/stencil" ] && command -v mpirun.mpich >/dev/null || echo "mpi: there is no MPICH" ;;
    ddp) /usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || echo "torch: python3-torch is not installed" ;;
    mpi4py | fsdp)
      if [ "$(uname -m)" != x86_64 ] || ! /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
        echo "wheels: the pinned wheels are for Python 3.11 on x86_64"
      elif [ "$1" = mpi4py ]; then
        real_install_mpi4py >"$work/log/install.log" 2>&1 || echo "pip: mpi4py cannot be installed"
      else
        tests/long/torch.sh "$sim/lib" >"$work/torch" 2>"$work/log/install.log" || echo "pip: PyTorch cannot be installed"
      fi
      ;;
  esac
}

real_install_mpi4py() {
  local to=$real_cache/mpi4py
  mkdir -p "$real_cache"
  (
    flock 9
    ! cmp -s tests/real/mpi4py.txt "$to/mpi4py.txt" || exit 0
    rm -rf "$to"
    /usr/bin/python3 -m venv "$to" && "$to/bin/pip" install --quiet --disable-pip-version-check --no-compile \
      --no-cache-dir --only-binary=:all: --require-hashes --requirement tests/real/mpi4py.txt &&
      cp tests/real/mpi4py.txt "$to/"
  ) 9>"$real_cache/.mpi4py-lock"
}

# Debian's fails without redirection. Compiled modules are kept: to compile PyTorch's takes a minute.
real_torchrun() { # real_torchrun OPTION...
  exec env PYTHONPYCACHEPREFIX="$real_cache/pycache" PYTHONWARNINGS=ignore OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo \
    /usr/bin/python3 -m torch.distributed.run --nproc_per_node 2 --master_port "$(free_port)" -r 1 -t 1 \
    --log_dir "$work/torchrun" "$@"
}

real_command() { # real_command PROGRAM: executes its launcher
  local site dummies
  case $1 in
    lammps)
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      exec mpirun --bind-to core --quiet -np 2 lmp -in tests/real/lammps.in -log none
      ;;
    mpich) exec mpirun.mpich -bind-to core -np 2 "$sim/stencil" ;;
    mpi4py)
      export OPENBLAS_NUM_THREADS=1
      exec "$real_cache/mpi4py/bin/mpiexec" -bind-to core -n 2 "$real_cache/mpi4py/bin/python" tests/real/mpi4py_job.py
      ;;
    ddp) real_torchrun tests/real/torch_job.py ;;
    fsdp)
      { read -r site; read -r dummies; } <"$work/torch"
      export PYTHONPATH=$site LD_LIBRARY_PATH=$PWD/$sim/lib:$dummies
      real_torchrun tests/real/torch_job.py --sharded
      ;;
  esac
}

real_steps() {
  kill -0 "$job_pid" 2>/dev/null || fail "the job ended"
  grep -Eq '^(\[.*\]:)?step |^ *[1-9][0-9]* +[0-9.]+ *$' "$job_log"
}

# Starts the program and waits until both ranks are seen. Sets real_ranks.
real_start() { # real_start PROGRAM
  local rank pid
  job_log=$work/log/$1-$(($(find "$work/log" -name "$1-*" | wc -l) + 1)).log
  : >"$job_log"
  real_command "$1" >"$job_log" 2>&1 </dev/null &
  job_pid=$!
  wait_until 150 "$1 to step" real_steps || fail "$1 does not run"
  seen 2
  real_ranks=()
  while read -r rank pid; do real_ranks[$rank]=$pid; done < <(ranks | jq -r '.[] | "\(.rank) \(.pid)"')
  [ ${#real_ranks[@]} -eq 2 ] || fail "$1: the ranks are $(ranks)"
}

real_end() {
  [ -z "$job_pid" ] || stop "$job_pid"
  job_pid=
}

# Whoever is accused in open incidents, and why: "rank 1, host; rank 0, hang". Empty: nobody.
real_accused() {
  open_incidents | jq -r '[.[] | select(.severity != "info") |
    "\(.culprits | map("\(.kind) \(.rank // .node // "")") | join(" and ")), \(.class)"] | sort | join("; ")'
}

# Any incident that is not a note of the whole job, open or not.
real_alarms() {
  incidents | jq -r --argjson old "$1" '[.[] | select((.id | IN($old[]) | not) and
    (.severity != "info" or .culprits != [])) | .summary] | join("; ")'
}

real_healthy() { # real_healthy SECONDS
  local end=$(($(now_ms) + $1 * 1000)) old
  old=$(incidents | jq -c 'map(.id)')
  right=yes verdict=silent seconds=$1
  while [ "$(now_ms)" -lt $end ]; do
    check_alive
    job_runs || fail "the job ended"
    verdict=$(real_alarms "$old") || verdict="no reply"
    [ -z "$verdict" ] || { right=no seconds=$((($(now_ms) - end) / 1000 + $1)); return; }
    verdict=silent
    sleep "$pause"
  done
}

real_is_accused() { verdict=$(real_accused) && [ -n "$verdict" ]; }

# Waits for an accusation of this rank, and of no other within three seconds.
real_wait() { # real_wait SECONDS RANK [CLASS]
  local begin
  begin=$(now_ms)
  right=no
  if ! wait_until "$1" "a verdict" real_is_accused 2>/dev/null; then
    verdict="nobody is named" seconds=$1
    verdict+="; notes: $(open_incidents | jq -r 'map(.summary) | join("; ")' || echo unknown)"
    return
  fi
  seconds=$(awk -v ms=$(($(now_ms) - begin)) 'BEGIN { printf "%.1f", ms / 1000 }')
  sleep 3
  verdict=$(real_accused) || verdict="no reply"
  # After its fault is over an incident may be closed: that is right, too.
  [[ $verdict =~ ^rank\ $2,\ ([a-z-]+)$ ]] && { [ -z "${3:-}" ] || [ "${BASH_REMATCH[1]}" = "$3" ]; } && right=yes
  verdict+=" (rank $2 it was)"
}

real_case() { # real_case CASE SECONDS: sets verdict, seconds, right
  local rank pid holder
  rank=$(draw 2)
  pid=${real_ranks[$rank]}
  case $1 in
    healthy) real_healthy "$2" ;;
    held)
      tests/real/hold.py "$pid" "${real_held_ms:-20}" 100 &
      holder=$!
      children+=("$holder")
      real_wait "$2" "$rank"
      stop "$holder"
      ;;
    stopped)
      kill -STOP "$pid"
      real_wait "$2" "$rank" hang
      kill -CONT "$pid"
      ;;
    killed)
      kill -KILL "$pid"
      real_wait "$2" "$rank" missing
      wait "$job_pid" 2>/dev/null || :
      job_pid=
      ;;
  esac
}

# Seconds of a step, by the program's own clock: of LAMMPS, those of the last 500 steps.
real_step() {
  awk '{ sub(/^\[.*\]:/, "") }
    $1 == "step" { told = $3 / 1e3 }
    $1 ~ /^[0-9]+$/ && NF == 2 { n++; step[n % 6] = $1; at[n % 6] = $2
      if (n > 6) told = (at[n % 6] - at[(n + 1) % 6]) / (step[n % 6] - step[(n + 1) % 6]) }
    END { if (told) print told }' "$job_log"
}

real_step_is_right() {
  local truth reported
  truth=$(real_step)
  reported=$(api "/api/v1/jobs/$job_id" | jq '.step_seconds')
  [ -n "$truth" ] && [ "$reported" != null ] && jq -en "$reported / $truth | . > 0.6 and . < 1.7" >/dev/null
}

# A test of one program: its step, and each case once. A rank is held for 40 of every 100 ms: at 20 ms, as in
# bench-real, another program that takes a tenth of a processor can hide it. PyTorch over Gloo has steps that
# vary by a third on two processors: who is held there is a matter of bench-real, which repeats it.
real_test() { # real_test PROGRAM
  local missing case list=(healthy held stopped killed) real_held_ms=40
  case $1 in ddp | fsdp) list=(healthy stopped killed) ;; esac
  setup
  missing=$(real_lacks "$1")
  [ -z "$missing" ] || skip "$missing"
  start_aggregator --resolve-after 10s
  start_agent here
  real_start "$1"
  wait_until 60 "the step of $1" real_step_is_right ||
    fail "the step is $(real_step) s, $(api "/api/v1/jobs/$job_id" | jq '.step_seconds') were reported"
  echo "a step of $(real_step) s, $(api "/api/v1/jobs/$job_id" | jq '.step_seconds') s reported"
  for case in "${list[@]}"; do
    real_case "$case" "$([ "$case" = healthy ] && echo 10 || echo 60)"
    [ "$right" = yes ] || fail "$1, $case: $verdict after $seconds s"
    echo "$1, $case: $verdict after $seconds s"
    [ "$case" = killed ] || heal
  done
}
