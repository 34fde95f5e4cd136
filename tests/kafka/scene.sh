# shellcheck shell=bash disable=SC2034 # what is set here is used where it is sourced
# SPDX-License-Identifier: GPL-3.0-or-later
# Aggregators, a feeder that plays agents, and a receiver of webhooks, on a real Kafka. Sourced from
# the root of the tree by the scripts that watch all of these together.
set -euo pipefail

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/kafka/lib.sh
. tests/kafka/lib.sh
programs=${bin%/*}/bin feeder=$bin/feeder
command -v kcat >/dev/null || skip "no kcat: 'make deps' installs it"
need "$programs/neutracer-agent" "$programs/neutracer-aggregator" "$programs/neutracer" "$feeder" curl jq python3

work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
mkdir "$work/log" "$work/feeder" "$work/out"
declare -A pid=() ports=()
feeder_pid='' mounts=()
# Who is told to stop can still say what there is to say.
finish() {
  local status=$? name
  set +e
  stop "$feeder_pid"
  for name in "${!pid[@]}"; do stop "${pid[$name]}"; done
  tests/kafka/kafka.sh down
  for name in "${mounts[@]}"; do umount --lazy "$name"; done
  rm -rf "$kafka_dir"
  (exit "$status")
  cleanup
}
trap finish EXIT

# Nobody waits for an answer of who is gone.
check_alive() {
  local name
  for name in "${!pid[@]}"; do
    kill -0 "${pid[$name]}" 2>/dev/null || fail "aggregator $name has ended"
  done
  for name in "${!agent_pid[@]}"; do
    kill -0 "${agent_pid[$name]}" 2>/dev/null || fail "agent $name has ended"
  done
  [ -z "$feeder_pid" ] || kill -0 "$feeder_pid" 2>/dev/null || fail "the feeder has ended"
}

# scene OPTION...: a Kafka with topics and a receiver.
scene() {
  kafka "$@"
  url=kafka://$NT_TEST_KAFKA
  "$programs/neutracer" topics create --bus "$url" --partitions 3 >"$work/log/topics.log" 2>&1 ||
    fail "the topics are not made"
  python3 tests/e2e/receiver.py "$work/receiver" "$work/messages" &
  children+=($!)
  wait_until 10 "the receiver" test -s "$work/receiver" || fail "no receiver"
  echo "http://127.0.0.1:$(cat "$work/receiver")/" >"$work/webhook"
}

# start_agent NAME URL: watches a group of no processes, and so sends node vectors alone.
start_agent() {
  [ -n "${cgroup:-}" ] || make_cgroup idle
  "$programs/neutracer-agent" --bus "$2" --node "$1" --cgroup "$cgroup" --shelter "$work/shelter-$1" \
    --metrics-file "$work/agent-$1.prom" >"$work/log/agent-$1.log" 2>&1 &
  agent_pid[$1]=$!
}
agent_metric() { # agent_metric NAME METRIC, with its labels
  awk -v name="neutracer_agent_$2" '$1 == name { print $2 }' "$work/agent-$1.prom" 2>/dev/null
}
says() { grep -q "$2" "$work/log/$1.log"; } # says NAME PATTERN: in its log

# small_disk NAME MIB: a file system of its own in $work/NAME. Needs root.
small_disk() {
  mkdir "$work/$1"
  mount -t tmpfs -o "size=$2m" tmpfs "$work/$1" 2>/dev/null || skip "no file system can be mounted here"
  mounts+=("$work/$1")
}
fill_disk() { dd if=/dev/zero of="$work/$1/junk" bs=4k status=none 2>/dev/null || :; }
empty_disk() { rm -f "$work/$1/junk"; }

# ---- aggregators ---------------------------------------------------------------------------------

readyz() { curl -s --max-time 10 "http://127.0.0.1:${ports[$1]}/readyz"; }
is_ready() { curl -sf --max-time 10 -o /dev/null "http://127.0.0.1:${ports[$1]}/readyz"; }
is_unready() { ! is_ready "$1"; }
# is_unready_for NAME CHECK TEXT: and says so.
is_unready_for() {
  is_unready "$1" && readyz "$1" | jq -e --arg check "$2" --arg text "$3" \
    '.checks[] | select(.name == $check and (.ok | not) and (.detail | contains($text)))' >/dev/null
}

run_one() { # run_one NAME [OPTION...]: without waiting
  local name=$1
  shift
  ports[$name]=${ports[$name]:-$(free_port)}
  # A start from nothing rereads no history here: what was learned before would be missed.
  "$programs/neutracer-aggregator" --bus "$url" --listen "127.0.0.1:${ports[$name]}" --member "$name" \
    --advertise "http://127.0.0.1:${ports[$name]}" --token-file "$work/token" --store "$work/$name.db" \
    --webhook-url-file "$work/webhook" --resolve-after 6s --save-every 3s --rewind 1s "$@" \
    >>"$work/log/$name.log" 2>&1 &
  pid[$name]=$!
}

start_one() { # start_one NAME [OPTION...]
  run_one "$@"
  wait_until 60 "aggregator $1 to be ready" is_ready "$1" || fail "aggregator $1 does not come up: $(readyz "$1")"
}

stop_one() { # stop_one NAME [SIGNAL]
  local one=${pid[$1]}
  unset "pid[$1]"
  stop "$one" "${2:-TERM}"
}

ask() { # ask NAME PATH
  curl -sf --max-time 10 -H "Authorization: Bearer $(head -n 1 "$work/token" | cut -d' ' -f1)" \
    "http://127.0.0.1:${ports[$1]}$2"
}

shown() { ask "$1" "/api/v1/incidents?limit=1000" | jq -c '[.items[] | [.id, .state, .summary]] | sort'; }
count_state() { ask "$1" "/api/v1/incidents?state=$2&limit=1000" | jq '.items | length'; }
has_state() { [ "$(count_state "$1" "$2")" -ge "$3" ]; } # has_state NAME STATE COUNT
metric() { # metric NAME METRIC: the sum over its labels
  ask "$1" /metrics | awk -v name="neutracer_aggregator_$2" \
    '$1 == name || index($1, name "{") == 1 { sum += $2 } END { print sum + 0 }'
}
is_over() { [ "$(metric "$1" "$2")" -gt "$3" ]; } # is_over NAME METRIC NUMBER
gaps_are_filled() {
  local name gaps=0
  for name in "${!pid[@]}"; do
    gaps=$((gaps + $(metric "$name" gaps_total) - $(metric "$name" gaps_filled_total)))
  done
  [ "$gaps" -eq 0 ]
}
starts_afresh() { cat "$work"/log/*.log | grep -c 'starting afresh' || :; }

# What the receiver was told, as ids: firing or resolved.
messages() { jq -r "select(.type == \"incident.$1\") | .data.id" "$work/messages" | sort; }
told() { [ "$(messages "$1" | sort -u | wc -l)" -ge "$2" ]; } # told EVENT COUNT
# expect_told ALARMS ENDS REPEATS: each alarm and each end is told once, but for so many.
expect_told() {
  local repeats=$(($(messages firing | wc -l) + $(messages resolved | wc -l) - $1 - $2))
  [ "$(messages firing | sort -u | wc -l)" = "$1" ] || fail "not $1 alarms: $(messages firing)"
  [ "$(messages resolved | sort -u | wc -l)" = "$2" ] || fail "not $2 ends: $(messages resolved)"
  [ -z "$(comm -13 <(messages firing) <(messages resolved | sort -u))" ] || fail "an end without its alarm"
  ((repeats >= 0 && repeats <= $3)) ||
    fail "$repeats messages were repeated: $(messages firing) $(messages resolved)"
  echo "$1 alarms and $2 ends told, $repeats repeats"
}

# ---- the feeder ----------------------------------------------------------------------------------

faults() { # faults PERCENT...: of each job, the last one for all others
  echo "$*" >"$work/feeder/.faults"
  mv "$work/feeder/.faults" "$work/feeder/faults"
}

start_feeder() { # start_feeder JOBS [PERCENT...]
  local jobs=$1
  shift
  faults "${@:-0}"
  "$feeder" "$url" "$jobs" "$work/feeder" >"$work/log/feeder.log" 2>&1 &
  feeder_pid=$!
  wait_until 20 "the feeder" test -s "$work/feeder/metrics" || fail "the feeder does not begin"
}

stop_feeder() {
  local one=$feeder_pid
  feeder_pid=''
  stop "$one"
}

fed() { awk -v name="$1" '$1 == name { print $2 }' "$work/feeder/metrics"; }
is_away() { [ "$(fed away)" = 1 ]; }
is_drained() { [ "$(fed away)" = 0 ] && [ "$(fed left)" = 0 ]; }

# Counted by others than ourselves: every number of every agent is on the bus.
expect_no_gap() {
  [ "$(fed lost)" = 0 ] || fail "the feeder has lost $(fed lost) messages"
  kcat -b "$NT_TEST_KAFKA" -C -q -e -t neutracer.window.v1 -f '%R%s' >"$work/out/windows"
  tests/e2e/sequences.py 0 <"$work/out/windows" | tail -n 1
  [ "${PIPESTATUS[0]}" -eq 0 ] || fail "sequence numbers are missing"
}
