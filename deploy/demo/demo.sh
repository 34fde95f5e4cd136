#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The product at work on one machine: a training job of eight ranks over stand-in GPU libraries, the
# agent with its probes, the aggregator. One rank, drawn by chance once everything runs, is made
# slow; the verdict comes from the REST API. Ends with 0 only if it named exactly that rank, with
# class compute, within ten seconds, and took it back after the rank was healed.
#
# Agent and aggregator cannot read which rank it is: the demo's control files are in a directory that is
# empty in their mount namespace.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

usage() {
  cat <<END
usage: deploy/demo/demo.sh [options]
  --factor F      how many times as long the slow rank computes (drawn from 1.3 to 3)
  --rank N        which rank (drawn)
  --job train     the training loop over stand-in CUDA and NCCL (the default)
  --job mpi       a real Open MPI job
  --ranks N       8
  --seconds N     healthy seconds before the fault (8)
  --resolve-after DURATION   how long a rank must be healthy until its incident ends (10s; the
                  product's default is 60s)
  --quiet         no story, only the verdict
END
}

job=train ranks=8 seconds=8 factor='' rank='' quiet='' resolve_after=10s within=30 promised=10
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage && exit 0 ;;
    --quiet) quiet=1 && shift && continue ;;
    --factor | --rank | --job | --ranks | --seconds | --resolve-after)
      [ $# -ge 2 ] || { echo "demo: '$1' needs a value" >&2 && exit 2; }
      name=${1#--}
      printf -v "${name//-/_}" %s "$2"
      shift 2
      ;;
    *)
      echo "demo: unknown option '$1'" >&2
      usage >&2
      exit 2
      ;;
  esac
done
case $job in train | mpi) ;; *) echo "demo: there is no job '$job', there are: train mpi" >&2 && exit 2 ;; esac
for value in "$ranks" "$seconds" "${rank:-0}"; do
  [[ $value =~ ^[0-9]+$ ]] || { echo "demo: '$value' is no number" >&2 && exit 2; }
done
[[ ${factor:-1.5} =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "demo: '$factor' is no factor" >&2 && exit 2; }
if [ "$(id -u)" -ne 0 ]; then
  echo "demo: needs root, to attach probes in the kernel" >&2
  exit 1
fi
if [ ! -r /sys/kernel/btf/vmlinux ]; then
  echo "demo: this kernel has no type information (/sys/kernel/btf/vmlinux), which eBPF needs" >&2
  exit 1
fi

bold='' plain='' red='' green=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m' red=$'\e[31m' green=$'\e[32m'; fi
print_line() { [ -n "$quiet" ] || printf '%s\n' "$*"; }
title() { [ -n "$quiet" ] || printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# progress SECONDS TEXT COMMAND...: waits like wait_until, and shows that it does.
progress() {
  local begin end text=$2 limit=$1 shown=-1 elapsed status=0
  shift 2
  begin=$(now_ms)
  end=$((begin + limit * 1000))
  until "$@"; do
    check_alive
    if [ "$(now_ms)" -ge "$end" ]; then
      status=1
      break
    fi
    elapsed=$((($(now_ms) - begin) / 1000))
    if [ -z "$quiet" ] && [ "$elapsed" -ne "$shown" ]; then
      shown=$elapsed
      if [ -t 1 ]; then printf '\r   %s %d s ' "$text" "$elapsed"; else printf '.'; fi
    fi
    sleep 0.1
  done
  [ -n "$quiet" ] || printf '\n'
  return $status
}

step_time() { tail -n 1 "$job_log" | sed -n 's/.*, \(.*\) a step/\1/p'; }
firing() {
  [[ "$(open_incidents | jq '[.[] | select(.severity != "info")] | length')" -ge 1 ]] &&
    [ "$(slow_ranks)" != '[]' ]
}
resolved() { [ "$(api "/api/v1/incidents/$1" | jq -r .state)" = resolved ]; }
pause_over() { [ "$SECONDS" -ge "$pause_end" ]; }

title "1. A training job of $ranks ranks"
setup
start_job "$job" "$ranks"
if [ "$job" = train ]; then
  print_line "   $sim/train, one process a rank, data-parallel, over CPU stand-ins for libcudart, libcuda and"
  print_line "   libnccl with the real names and calling conventions: streams are asynchronous, collectives"
  print_line "   really synchronise the processes. It has no code for NeuTracer."
else
  print_line "   $sim/mpi_train under the machine's Open MPI, blocking MPI_Allreduce. It has no code for NeuTracer."
fi

title "2. The aggregator and the agent"
start_aggregator --resolve-after "$resolve_after"
print_line "   aggregator: process $agg_pid, REST on http://127.0.0.1:$port"
start_agent "$(uname -n)"
print_line "   agent: process ${agent_pid[$(uname -n)]}, eBPF probes in the libraries that the ranks map; no configuration,"
print_line "   no broker: the bus is a directory. Both were started in a mount namespace where the demo's"
print_line "   control files do not exist."
progress 30 "looking for the ranks" job_is_seen "$ranks" ||
  fail "the ranks are not seen: $(api /api/v1/jobs)"
print_line "   all $ranks ranks were found by themselves; a step takes $(step_time)"

title "3. Healthy for $seconds seconds"
pause_end=$((SECONDS + seconds))
progress 3600 "watching" pause_over
open=$(open_incidents)
[ "$open" = '[]' ] || fail "somebody is accused although nobody is slow: $open"
print_line "   nobody is accused."

rank=${rank:-$(draw "$ranks")}
factor=${factor:-$(awk -v n="$(draw 1701)" 'BEGIN { printf "%.2f", 1.3 + n / 1000 }')}
title "4. Now rank $rank computes $factor times as long"
print_line "   drawn by chance just now; every rank suffers, since all wait for the slowest."
begin=$(now_ms)
fault "compute $rank $factor"
progress "$within" "waiting for the verdict" firing || fail "no verdict within $within s"
took=$(($(now_ms) - begin))

verdict=$(open_incidents | jq -c '[.[] | select(.severity != "info")][0]')
id=$(jq -r .id <<<"$verdict")
title "5. The verdict, after $(awk -v ms="$took" 'BEGIN { printf "%.1f", ms / 1000 }') s (GET /api/v1/incidents/$id)"
printf '   %s%s%s\n' "$red" "$(jq -r .summary <<<"$verdict")" "$plain"
jq -r '
  def cell: if . == null then "-" else (. * 100 | round / 100 | tostring) end;
  "   who:      " + ([.culprits[] | "\(.kind) \(.rank) on node \(.node)"] | join(", ")),
  "   class:    \(.class)" + (if .cause then ", \(.cause)" else "" end),
  "   how much: the job takes \(.slowdown | cell) times as long as it could",
  "   since:    \(.since), decided \(.seen)",
  "   sure:     confidence \(.confidence | cell), tier \(.tier), complete \(.completeness | cell)",
  (.evidence[] | "   evidence: \(.what): \(.value | cell)\(if .unit == "1" then "" else " " + .unit end), its peers \(.peers | cell) (\(.method), \(.windows) windows)")
' <<<"$verdict"
slow=$(slow_ranks | jq -c '[.[] | [.rank, .class]]')
print_line "   the same as a table: neutracer slow-ranks"
[ -n "$quiet" ] || "$bin/neutracer" slow-ranks --job "$job_name" --server "http://127.0.0.1:$port" --token-file "$work/token" |
  sed 's/^/   /'

title "6. The rank is healed"
fault
progress 120 "waiting until it has been healthy for $resolve_after" resolved "$id" || fail "the incident does not end"
print_line "   $(api "/api/v1/incidents/$id" | jq -r '"the incident is \(.state) as of \(.until)"'); a step takes $(step_time)"
# What accuses nobody is news of the job: a busy machine slows all its ranks down.
final=$(incidents | jq -c '[.[] | select(.class | IN("job-wide", "imbalance") | not)
  | [.class, [.culprits[] | [.kind, .rank]]]]')
notes=$(incidents | jq -r '.[] | select(.class | IN("job-wide", "imbalance")) | .summary')
end_job || fail "the job failed"

if [ "$took" -gt $((promised * 1000)) ]; then
  printf '\n%stoo late: the verdict came after %d ms, %d s are promised%s\n' "$red" "$took" "$promised" "$plain"
  exit 1
fi
[ -z "$notes" ] || printf '\n   also reported, as information that pages nobody:\n   %s\n' "${notes//$'\n'/$'\n'   }"
if [ "$slow" = "[[$rank,\"compute\"]]" ] && [ "$final" = "[[\"compute\",[[\"rank\",$rank]]]]" ]; then
  printf '\n%sright: rank %s, compute, and nobody else%s\n' "$green" "$rank" "$plain"
else
  printf '\n%swrong: rank %s was slow, the verdicts are %s and %s%s\n' "$red" "$rank" "$slow" "$final" "$plain"
  exit 1
fi
