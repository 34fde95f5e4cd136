#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs test programs and counts the results.
#
#   tests/run.sh PROGRAM...   runs each; lists the slowest and those that failed, and ends with
#                             "N passed, N failed, N skipped"
#   tests/run.sh --stages GROUP...   `make STAGE` for each stage, then the same for all of them. A
#                             group is "STAGE", "STAGE + STAGE" (one after another), or several of
#                             these with "&" between them, which run in parallel. "idle STAGE" only
#                             has the processor time that the others leave; "nice STAGE" has a little
#                             more, and precedes idle ones. "~STAGE" may last until the end of the next
#                             group
#
# A program that prints a TAP plan ("1..N") counts as N tests, any other as one: exit status 0 is
# passed, 77 is skipped, all else failed. A skip prints its reason as "skip: KIND: reason"; KIND is
# one of bpf, vm, kafka, wheels, mpi, torch, pip, root, browser, cluster, or another word.
# Environment:
#   NT_REQUIRE   kinds whose skip is a failure, separated by commas
#   NT_KIND      the kind of a skip without one
#   NT_RESULTS   a directory for the results of several runs: sum, failed, unsteady, times, stages
#   NT_FAILED    a file to which the names of failed tests are appended, by all stages
#   NT_TIMEOUT   time limit of a program in seconds (300)
#   NT_JOBS      number of programs run in parallel (1): for independent ones of low load
#   NT_AGAIN     1: a failed program of a stage with NT_KIND is run once more. What passes then is
#                listed as unsteady: the machine was too busy, or there is a race to be found
set -u

passed=0 failed=0 skipped=0
SLOWEST=25 REASON_BYTES=200
logs=$(mktemp -d) || exit 1
results=${NT_RESULTS:-$logs/results}
mkdir -p "$results"
kept=(sum failed unsteady times stages)
touch "${kept[@]/#/$results/}"
log=$logs/log
declare -A running=() # process id: program
declare -A again=() # program: how it failed at first
trap 'rm -rf "$logs"' EXIT
trap 'kill -TERM "${!running[@]}" 2>/dev/null; wait; exit 130' INT TERM HUP

say() { printf '  %-7s %s\n' "$1" "$2"; }

# failure NAME REASON: prints it, and again at the end.
failure() {
  say FAILED "$1 ($2)"
  printf '%s (%s)\n' "$1" "${2:0:REASON_BYTES}" >>"$results/failed"
}

required() {
  case ",${NT_REQUIRE:-}," in
    *",$1,"*) return 0 ;;
    *) return 1 ;;
  esac
}

# skip NAME REASON: REASON is "KIND: why", or empty.
skip() {
  local kind=${2%%:*}
  [ -n "$2" ] || kind=${NT_KIND:-}
  if [ -n "$kind" ] && required "$kind"; then
    failed=$((failed + 1))
    failure "$1" "skipped, but NT_REQUIRE names '$kind': ${2:-no reason given}"
  else
    skipped=$((skipped + 1))
    say skipped "$1 (${2:-no reason given})"
  fi
}

# count_tap NAME STATUS: reads the log.
count_tap() {
  local name=$1 status=$2 plan=0 ok=0 bad=0 skips=0 reason='' line
  while IFS= read -r line; do
    case $line in
      1..*) plan=$((plan + ${line#1..})) ;;
      'skip: '*) reason=${line#skip: } ;;
      *'ok '*'# SKIP'*) skips=$((skips + 1)); skip "$name: ${line##*# SKIP }" "$reason"; reason='' ;;
      'ok '*) ok=$((ok + 1)) ;;
      'not ok '*) bad=$((bad + 1)) ;;
    esac
  done <"$log"
  if [ $((ok + bad + skips)) -lt "$plan" ]; then
    bad=$((bad + plan - ok - bad - skips))
    echo "# $name ended before its plan of $plan tests was done, status $status" >>"$log"
  elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
    bad=1
    echo "# $name ended with status $status" >>"$log"
  fi
  passed=$((passed + ok)) failed=$((failed + bad))
  if [ "$bad" -gt 0 ]; then
    failure "$name" "$bad of $plan: $(grep -v '# SKIP' "$log" | grep -m 1 -E '^not ok |^# .* ended ')"
    grep -v '^ok ' "$log" | sed 's/^/    /'
  else
    say ok "$name ($ok)"
  fi
}

start() { # start PROGRAM
  local program=$1 output
  output=$(mktemp "$logs/XXXXXX") || exit 1
  case $program in */*) ;; *) program=./$program ;; esac
  CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 "${NT_TIMEOUT:-300}" "$program" >"$output" 2>&1 </dev/null &
  running[$!]=$1
  log_of[$!]=$output
  began[$!]=$SECONDS
}

# must_repeat PROGRAM STATUS: reads the log. Not what took too long, which would do so again, nor what a
# sanitizer found.
must_repeat() {
  case $2 in 0 | 77 | 124 | 137) return 1 ;; esac
  ! grep -qE 'runtime error: |ERROR: (Address|Thread)Sanitizer' "$log" || return 1
  [ -n "${NT_AGAIN:-}" ] && [ -n "${NT_KIND:-}" ] && [ -z "${again[$1]:-}" ] || return 1
  again[$1]=$(grep -m 1 '^not ok ' "$log" || tail -n 1 "$log")
  again[$1]=${again[$1]:-status $2}
}

# Waits for the next program to end, and processes its result.
finish() {
  local pid status=0
  wait -n -p pid "${!running[@]}" || status=$?
  log=${log_of[$pid]}
  echo "$((SECONDS - ${began[$pid]})) ${running[$pid]}" >>"$results/times"
  if must_repeat "${running[$pid]}" "$status"; then
    say again "${running[$pid]} (${again[${running[$pid]}]:0:REASON_BYTES})"
    tail -n 60 "$log" | sed 's/^/    /'
    start "${running[$pid]}"
  else
    judge "${running[$pid]}" "$status"
  fi
  rm -f "$log"
  unset "running[$pid]" "log_of[$pid]" "began[$pid]"
}

# What failed at first and then did not.
note_unsteady() {
  local program name
  for program in "${!again[@]}"; do
    name=${program#build/} name=${name%.sh}
    grep -qF "$name (" "$results/failed" || echo "$name (${again[$program]:0:REASON_BYTES})" >>"$results/unsteady"
  done
}

run_all() { # run_all PROGRAM...
  local program
  declare -A log_of=() began=()
  for program; do
    # One that failed and runs again takes its place once more.
    while [ "${#running[@]}" -ge "${NT_JOBS:-1}" ]; do finish; done
    start "$program"
  done
  while [ "${#running[@]}" -gt 0 ]; do finish; done
  note_unsteady
}

judge() { # judge PROGRAM STATUS
  local name=${1#build/} status=$2
  name=${name%.sh}
  if grep -q '^1\.\.[0-9][0-9]*$' "$log"; then
    count_tap "$name" "$status"
  elif [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    say ok "$name"
  elif [ "$status" -eq 77 ]; then
    skip "$name" "$(sed -n 's/^skip: //p' "$log" | tail -n 1)"
  else
    failed=$((failed + 1))
    [ "$status" -ne 124 ] || echo "# took longer than ${NT_TIMEOUT:-300} s" >>"$log"
    failure "$name" "status $status: $(tail -n 1 "$log")"
    tail -n 60 "$log" | sed 's/^/    /'
  fi
}

summary() {
  local p f s
  passed=0 failed=0 skipped=0
  while read -r p f s; do
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  done <"$results/sum"
  echo "slowest, in seconds:"
  sort -rn "$results/times" | head -n "$SLOWEST" | while read -r p s; do printf '  %5d %s\n' "$p" "$s"; done
  if [ -s "$results/stages" ]; then
    echo "stages, in seconds:"
    sed 's/^/  /' "$results/stages"
  fi
  if [ -s "$results/unsteady" ]; then
    echo "unsteady, passed when run again:"
    sed 's/^/  /' "$results/unsteady"
  fi
  if [ -s "$results/failed" ]; then
    echo "failed:"
    sed 's/^/  /' "$results/failed" | tee -a "${NT_FAILED:-/dev/null}"
  fi
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
}

# A stage that fails without a counted failure failed before its tests.
stage() { # stage STAGE
  local stage=$1 start=$SECONDS file less=()
  case $stage in
    idle\ *) less=(chrt --idle 0) ;;
    nice\ *) less=(nice -n 10) ;;
  esac
  [ -z "${less[*]}" ] || stage=${stage#* }
  echo "== make $stage"
  NT_RESULTS=$(mktemp -d "$logs/stage.XXXXXX") || exit 1
  export NT_RESULTS
  touch "${kept[@]/#/$NT_RESULTS/}"
  # shellcheck disable=SC2086 # a stage is a target and its variables
  "${less[@]}" "${MAKE:-make}" --no-print-directory -j"$(nproc)" $stage &
  running=([$!]=$stage)
  wait "$!" || [ -s "$NT_RESULTS/failed" ] || {
    echo "0 1 0" >>"$NT_RESULTS/sum"
    say FAILED "make $stage"
    echo "make $stage (ended before its tests)" >>"$NT_RESULTS/failed"
  }
  printf '%5d %s\n' $((SECONDS - start)) "${1%"$stage"}$stage" >>"$NT_RESULTS/stages"
  for file in "${kept[@]}"; do cat "$NT_RESULTS/$file" >>"$results/$file"; done
  echo "== make $stage: $((SECONDS - start)) s"
}

chain() { # chain "STAGE + STAGE..."
  local stages stage
  trap 'kill -TERM "${!running[@]}" 2>/dev/null; exit 130' INT TERM HUP
  IFS=+ read -ra stages <<<"$1"
  for stage in "${stages[@]}"; do stage "$(xargs <<<"$stage")"; done
}

# Output of parallel stages is printed when they have ended.
stages() { # stages GROUP...
  local group chains chain pid count=0
  local -A awaited
  for group in "$@" ''; do
    awaited=()
    for pid in "${!running[@]}"; do awaited[$pid]=1; done
    IFS='&' read -ra chains <<<"$group"
    [ "${#chains[@]}" -le 1 ] || echo "== side by side: $group"
    for chain in "${chains[@]}"; do
      count=$((count + 1))
      if [ "${#chains[@]}" -eq 1 ]; then
        chain "$chain" &
      else
        chain "${chain/\~/}" >"$logs/chain.$count" 2>&1 &
      fi
      running[$!]=$logs/chain.$count
      [[ $chain =~ ^\ *~ ]] || awaited[$!]=1
    done
    while [ "${#awaited[@]}" -gt 0 ]; do
      wait -n -p pid "${!running[@]}"
      cat "${running[$pid]}" 2>/dev/null
      rm -f "${running[$pid]}"
      unset "running[$pid]" "awaited[$pid]"
    done
  done
}

if [ "${1:-}" = --stages ]; then
  shift
  stages "$@"
  summary
else
  run_all "$@"
  echo "$passed $failed $skipped" >>"$results/sum"
  [ -z "${NT_RESULTS:-}" ] || exit "$((failed > 0))"
  summary
fi
