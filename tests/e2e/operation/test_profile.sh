#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A profile of a rank of a PyTorch job: planted functions appear with about their shares, on and off the
# CPU, in all forms. What is wrong is refused by name, and a third profile at a time states why it is not
# taken.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "torch: python3-torch is not installed"
setup
start_aggregator
start_agent here
start_job gloo 3 --compute-ms 80 --spin-ms 20
seen 3

profile() { "$bin/neutracer" profile --server "http://127.0.0.1:$port" --token-file "$work/token" "$@"; }
# of FILE TEXT: samples of the lines with the text.
of() { awk -v text="$2" 'index($0, text) { n += $NF } END { print n + 0 }' "$1"; }
between() { # between WHAT VALUE LEAST MOST
  [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1: $2, wanted $3 to $4: $(cat "$work/out/folded" "$work/out/said")"
}

profile "$job_name/1" --seconds 8 --output "$work/out/folded" 2>"$work/out/said" || fail "profile: $(cat "$work/out/said")"
long=$(of "$work/out/folded" ';rest_long (ddp_gloo.py)')
short=$(of "$work/out/folded" ';rest_short (ddp_gloo.py)')
spin=$(of "$work/out/folded" ';spin (ddp_gloo.py)')
[ "$short" -gt 0 ] || fail "no rest_short: $(cat "$work/out/folded" "$work/out/said")"
between "tenths of rest_long to rest_short" $((10 * long / short)) 20 45
between "percent of spin to rest_short" $((100 * spin / short)) 40 300
on=$(grep '\[on-cpu\]' "$work/out/folded" | awk '/;spin / { n += $NF } END { print n + 0 }')
between "percent of spin on the CPU" $((100 * on / spin)) 80 100
off=$(grep '\[off-cpu\]' "$work/out/folded" | awk '/;rest_long / { n += $NF } END { print n + 0 }')
between "percent of rest_long off the CPU" $((100 * off / long)) 80 100

profile "$job_name/2" --seconds 2 --kind on-cpu --format html --output "$work/out/page.html" 2>"$work/out/said" ||
  fail "html: $(cat "$work/out/said")"
grep -q '>spin (' "$work/out/page.html" || fail "no spin in the page"
! grep -q '\[off-cpu\]</button>' "$work/out/page.html" || fail "threads that wait are in the page of --kind on-cpu"
profile "$job_id/0" --seconds 2 --hz 19 --format pprof 2>"$work/out/said" >"$work/out/profile.pb.gz" || fail "pprof: $(cat "$work/out/said")"
gunzip -c "$work/out/profile.pb.gz" | grep -aq rest_long || fail "no rest_long in the profile of pprof"

# Two at a time on a node.
for rank in 0 1; do
  profile "$job_name/$rank" --seconds 12 >/dev/null 2>&1 &
  waits+=($!)
done
metric() { sed -n "s/^neutracer_agent_$1 //p" "$work/agent-here.prom"; }
sleep 4
! profile "$job_name/2" --seconds 2 >/dev/null 2>"$work/out/said" || fail "a third profile was taken"
grep -q "other profiles are being taken" "$work/out/said" || fail "a third profile: $(cat "$work/out/said")"
for pid in "${waits[@]}"; do
  wait "$pid" || fail "one of two profiles failed"
done
wait_until 10 "the metric" eval '[ "$(metric profiles_refused_total)" = 1 ]' || fail "refused: $(metric profiles_refused_total)"

refused() { # refused EXIT TEXT ARG...
  local code=0 wanted=$1 text=$2 output
  shift 2
  output=$(profile "$@" 2>&1) || code=$?
  [ "$code" = "$wanted" ] || fail "profile $*: exit $code, wanted $wanted: $output"
  grep -qF -- "$text" <<<"$output" || fail "profile $*: no '$text' in: $output"
}
refused 8 "no rank 9" "$job_name/9"
refused 8 "no running job is named 'other'" other/1
refused 2 "is no JOB/RANK" "$job_name"
refused 2 "seconds" "$job_name/1" --seconds 61
end_job || fail "the job failed"
