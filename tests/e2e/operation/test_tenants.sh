#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Two users start jobs with the same MASTER_ADDR, MASTER_PORT and ranks. They are two jobs, each under
# its user's key and with its own processes alone; a slow rank of one is named in that one.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

victim=64001 other=64002

setup
chmod 711 "$work"
cp -r "$sim" "$work/job"
rm -rf "$work/job/obj"
start_aggregator --resolve-after 10s
stay_apart
start_agent here

number=$(free_port)
declare -A launcher=()
start_tenant() { # start_tenant UID [VARIABLE=VALUE...]
  local dir=$control/$1
  mkdir -p "$dir/truth"
  : >"$dir/faults"
  chown -R "$1:$1" "$dir"
  chmod 755 "$control"
  env "${@:2}" setpriv --reuid "$1" --regid "$1" --clear-groups "$work/job/launch" -n 4 --port "$number" -- \
    "$work/job/train" --seconds 3600 --faults "$dir/faults" --out "$dir/truth" >"$work/log/job-$1.log" 2>&1 &
  launcher[$1]=$!
  children+=("$!")
}
start_tenant $victim NT_JOB=first
start_tenant $other NT_JOB=second "POD_NAMESPACE=user/$victim"

# The job of the user: its key, its name and that it has these processes and no others.
declare -A id=()
is_apart() { # is_apart UID: sets id
  local job pids
  pids=$(children_of "${launcher[$1]}" | tr ' ' '\n' | sort -n | grep .) || return 1
  for job in $(api /api/v1/jobs | jq -r '.items[] | select(.state == "running" and .live == 4) | .id'); do
    [ "$(api "/api/v1/jobs/$job/ranks?limit=100" | jq '.items[].pid' | sort -nu)" = "$pids" ] || continue
    [[ "$(api "/api/v1/jobs/$job" | jq -r .key)" = "user/$1/torch:"* ]] || return 1
    id[$1]=$job
    return 0
  done
  return 1
}
for tenant in $victim $other; do
  wait_until 30 "the job of user $tenant" is_apart "$tenant" ||
    fail "user $tenant has no job of its own: $(for job in $(api /api/v1/jobs | jq -r '.items[].id'); do api "/api/v1/jobs/$job"; done)"
done

fault_of() { # fault_of UID LINE...
  printf '%s\n' "${@:2}" >"$control/$1/.faults"
  chmod 644 "$control/$1/.faults"
  mv "$control/$1/.faults" "$control/$1/faults"
}
sleep 6 # healthy windows of both
fault_of $other "compute 2 2"
job_name=second
expect 60 "the second user's job" compute 2
job_name=first
no_incident
echo "two users, one address: two jobs, and the slow rank of one is its own"
