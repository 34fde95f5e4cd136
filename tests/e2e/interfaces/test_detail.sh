#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A job in a pod, at level 1, on a real Kafka. A client that shares no code with this project prints the
# records of its single calls, each with its tags; so does the command, for one rank.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

command -v java >/dev/null || skip "kafka: no Java: 'make deps' installs it"
command -v kcat >/dev/null || skip "kafka: no kcat: 'make deps' installs it"
command -v protoc >/dev/null || skip "kafka: no protoc: 'make deps' installs it"
if ! command -v mvn >/dev/null && [ ! -d "${NT_KAFKA_JARS:-$HOME/.cache/neutracer-kafka}" ]; then
  skip "kafka: no Maven to fetch Kafka with: 'make deps' installs it"
fi

setup
# shellcheck source=tests/kafka/ports.sh
. tests/kafka/ports.sh
claim_ports || fail "no ports for Kafka"
export NT_KAFKA=$work/kafka
finish() {
  local status=$?
  tests/kafka/kafka.sh down || :
  (exit $status)
  cleanup
}
trap finish EXIT
servers=$(tests/kafka/kafka.sh up) || fail "Kafka does not come up"
bus=kafka://$servers
"$bin/neutracer" topics create --bus "$bus" --partitions 3 >"$work/log/topics.log" 2>&1 ||
  fail "topics cannot be made"

# The cgroup of a pod's container, for this script and so for the job.
uid=12345678-90ab-cdef-1234-567890abcdef
container=$(printf 'c0ffee%058d' 1)
stay_apart
mkdir -p "$apart/pod$uid/$container"
cgroups=("$apart/pod$uid/$container" "$apart/pod$uid" "${cgroups[@]}")

metric() {
  awk -v name="$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { print sum + 0 }' "$work/agent-node-a.prom"
}
has_records() { [ "$(metric neutracer_agent_detail_records_total)" -gt "$1" ]; }

for name in secret other-secret; do openssl rand -hex 32 >"$work/$name"; done
"$bin/neutracer" node-key --node-secret-file "$work/secret" node-a >"$work/node-a.key" || fail "no key"
chmod 600 "$work/node-a.key"
start_agent node-a --bus "$bus" --level 1 --message-key-file "$work/node-a.key"
echo $$ >"$apart/pod$uid/$container/cgroup.procs"
export POD_NAME=llm-0 POD_NAMESPACE=train NT_JOB=llm
start_job train 4
echo $$ >"$apart/cgroup.procs"
wait_until 30 "records" has_records 2000 || fail "there are no records"

"$bin/neutracer" detail --bus "$bus" --seconds 4s --json llm/2 >"$work/out/command.json" || fail "the command fails"
[ "$(jq -s 'map(select(.kind)) | length' "$work/out/command.json")" -gt 100 ] || fail "the command prints no records"
jq -es 'all(.rank == 2 and .job == "llm" and .pod == "llm-0" and .namespace == "train" and .node == "node-a")' \
  "$work/out/command.json" >/dev/null || fail "the command prints other records: $(head -n 3 "$work/out/command.json")"
"$bin/neutracer" detail --bus "$bus" --seconds 2s --rewind 1m --node-secret-file "$work/secret" llm/3 >"$work/out/command.txt"
grep -q 'comm *ncclAllReduce' "$work/out/command.txt" || fail "no table of rank 3: $(head "$work/out/command.txt")"
"$bin/neutracer" detail --bus "$bus" --seconds 1s --rewind 1m other/3 >"$work/out/none.txt" 2>&1
grep -q 'no records' "$work/out/none.txt" || fail "another job's records are printed"

"$bin/neutracer" detail --bus "$bus" --seconds 1s --rewind 1m --node-secret-file "$work/other-secret" llm >"$work/out/refused.txt" 2>&1
grep -q 'not signed' "$work/out/refused.txt" || fail "a wrong signature is not reported"
! grep -q ncclAllReduce "$work/out/refused.txt" || fail "records of another signature are printed"

end_job || fail "the job failed"
stop_agent node-a
kcat -b "$servers" -C -q -e -t neutracer.detail.v1 -f '%R%s' >"$work/out/detail"
tests/e2e/detail.py 4 ncclAllReduce,cudaLaunchKernel job=llm namespace=train pod=llm-0 "pod_uid=$uid" container= node=node-a \
  <"$work/out/detail" || fail "the records are not right"
