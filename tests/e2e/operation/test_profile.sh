#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A profile of a rank of a PyTorch job: planted functions appear with about their shares, on and off the
# CPU, in all forms. What is wrong is refused by name, and a third profile of one owner at a time states
# why it is not taken. Shares are those of whole samples of one thread, so that a busy machine, which
# takes fewer samples, has about the same.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "torch: python3-torch is not installed"
setup
start_aggregator
start_agent here
start_job gloo 3 --compute-ms 80 --spin-ms 20
seen 3

command_of() { "$bin/neutracer" "$1" --server "http://127.0.0.1:$port" --token-file "$work/token" "${@:2}"; }
profile() { command_of profile "$@"; }
# of FILE TEXT [TEXT]: samples of the lines with the texts.
of() { awk -v one="$2" -v other="${3:-}" 'index($0, one) && index($0, other) { n += $NF } END { print n + 0 }' "$1"; }
between() { # between WHAT VALUE LEAST MOST
  if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
    fail "$1: $2, wanted $3 to $4: $(cat "$work/out/folded" "$work/out/said")"
  fi
}

profile "$job_name/1" --seconds 10 --output "$work/out/folded" 2>"$work/out/said" || fail "profile: $(cat "$work/out/said")"
grep -q ' torn, [0-9]* without a frame, [0-9]* left out' "$work/out/said" || fail "not stated: $(cat "$work/out/said")"
long=$(of "$work/out/folded" ';rest_long (ddp_gloo.py)')
short=$(of "$work/out/folded" ';rest_short (ddp_gloo.py)')
spin=$(of "$work/out/folded" ';spin (ddp_gloo.py)')
[ "$short" -ge 5 ] || fail "$short samples of rest_short: $(cat "$work/out/folded" "$work/out/said")"
# 60 ms, 20 ms and 20 ms of a step, and later if others have the CPU when the sleep is over.
between "tenths of rest_long to rest_short" $((10 * long / short)) 13 60
between "percent of spin to rest_short" $((100 * spin / short)) 20 500
# What uses the CPU never sleeps; what slept may wait for a CPU.
between "percent of spin on the CPU" $((100 * $(of "$work/out/folded" '[on-cpu]' ';spin ') / spin)) 80 100
between "percent of rest_long off the CPU" $((100 * $(of "$work/out/folded" '[off-cpu]' ';rest_long ') / long)) 40 100

profile "$job_name/2" --seconds 4 --kind on-cpu --format html --output "$work/out/page.html" 2>"$work/out/said" ||
  fail "html: $(cat "$work/out/said")"
grep -q '>spin (' "$work/out/page.html" || fail "no spin in the page: $(cat "$work/out/said")"
! grep -q '\[off-cpu\]</button>' "$work/out/page.html" || fail "threads that wait are in the page of --kind on-cpu"
profile "$job_name/2" --seconds 4 --kind off-cpu --output "$work/out/off" 2>"$work/out/said" || fail "off-cpu: $(cat "$work/out/said")"
[ "$(of "$work/out/off" ';rest_long ')" -gt 0 ] || fail "no rest_long off the CPU: $(cat "$work/out/off")"
[ "$(of "$work/out/off" '[on-cpu]')" = 0 ] || fail "threads that run are in the profile of --kind off-cpu"
profile "$job_id/0" --seconds 4 --hz 19 --format pprof 2>"$work/out/said" >"$work/out/profile.pb.gz" || fail "pprof: $(cat "$work/out/said")"
gunzip -c "$work/out/profile.pb.gz" | grep -aq rest_long || fail "no rest_long in the profile of pprof"

# Two at a time of one owner.
begin() { # begin RANK: prints the id
  curl -sf --max-time 10 -H "Authorization: Bearer $(head -n 1 "$work/token" | cut -d' ' -f1)" -H 'Content-Type: application/json' \
    -d "{\"job\": \"$job_id\", \"rank\": $1, \"seconds\": 20}" "http://127.0.0.1:$port/api/v1/profiles" | jq -r .id
}
is_state() { [ "$(api "/api/v1/profiles/$1" | jq -r .state)" = "$2" ]; }
metric() { sed -n "s/^neutracer_agent_$1 //p" "$work/agent-here.prom"; }
is_metric() { [ "$(metric "$1")" = "$2" ]; }
for rank in 0 1; do
  ids[rank]=$(begin "$rank")
  wait_until 40 "a profile to run" is_state "${ids[rank]}" running || fail "profile: $(api "/api/v1/profiles/${ids[rank]}")"
done
! profile "$job_name/2" --seconds 2 >/dev/null 2>"$work/out/said" || fail "a third profile was taken"
grep -q "other profiles of the same pod, container or user" "$work/out/said" || fail "a third profile: $(cat "$work/out/said")"
for id in "${ids[@]}"; do
  wait_until 90 "the profile" is_state "$id" complete || fail "profile: $(api "/api/v1/profiles/$id")"
  [ "$(api "/api/v1/profiles/$id" | jq .samples)" -gt 0 ] || fail "no samples: $(api "/api/v1/profiles/$id")"
done
wait_until 60 "the metric" is_metric 'profiles_refused_total{reason="owner"}' 1 || fail "refused: $(grep profiles_refused "$work/agent-here.prom")"
wait_until 60 "the metric" is_metric profiles_total 6 || fail "taken: $(metric profiles_total)"

# At level 2 a rank is profiled one time after the other.
api "/api/v1/profiles?job=$job_name" | jq -e '.items | length > 0 and all(.job_key != "" and (has("stacks") | not))' >/dev/null ||
  fail "list: $(api "/api/v1/profiles?job=$job_name")"
command_of level "$job_name/2" 2 --ttl 1m >"$work/out/said" || fail "level: $(cat "$work/out/said")"
is_profiled() { # at the rate of the level, not at that of a request
  profile "$job_name/2" --last --json >"$work/out/last" 2>/dev/null && [ "$(jq .hz "$work/out/last")" = 19 ] && jq -e 'any(.frames[]; .function == "rest_long")' "$work/out/last" >/dev/null
}
wait_until 90 "a profile of level 2" is_profiled || fail "level 2: $(api "/api/v1/profiles?job=$job_name" | jq -c '[.items[] | [.rank, .hz, .state, .reason]]')"
command_of level "$job_name/2" 0 >/dev/null

refused() { # refused EXIT TEXT ARG...
  local code=0 wanted=$1 text=$2 output
  shift 2
  output=$(profile "$@" 2>&1) || code=$?
  [ "$code" = "$wanted" ] || fail "profile $*: exit $code, wanted $wanted: $output"
  grep -qF -- "$text" <<<"$output" || fail "profile $*: no '$text' in: $output"
}
refused 8 "no rank 9" "$job_name/9"
refused 8 "no profile of rank 9" "$job_name/9" --last
refused 8 "no running job is named 'other'" other/1
refused 2 "is not JOB/RANK" "$job_name"
refused 2 "seconds" "$job_name/1" --seconds 61
end_job || fail "the job failed"
