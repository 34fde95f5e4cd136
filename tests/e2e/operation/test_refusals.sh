#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What cannot work ends in one clear line and a named exit code; what can go on goes on.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup

refused() { # refused STATUS TEXT COMMAND...
  local want=$1 text=$2 status=0
  shift 2
  timeout 20 "$@" >"$work/out/stdout" 2>"$work/out/stderr" || status=$?
  [ "$status" -eq "$want" ] || fail "$*: status $status, want $want: $(cat "$work/out/stderr")"
  # What it did before, it may say; why it ends, it says once.
  [ "$(grep -vc '^level=info' "$work/out/stderr")" -eq 1 ] || fail "$*: not one line: $(cat "$work/out/stderr")"
  grep -q -- "$text" "$work/out/stderr" || fail "$*: '$(cat "$work/out/stderr")' does not say '$text'"
}

agent=("$PWD/$bin/neutracer-agent" --bus "spool:$work/spool")
aggregator=("$PWD/$bin/neutracer-aggregator" --bus "spool:$work/spool" --store "$work/store.db"
  --token-file "$work/token" --listen 127.0.0.1:0)

# The command line, the environment, the file: the key, the value and what is allowed.
refused 2 'window-mim' "${agent[@]}" --window-mim 1s
refused 2 'window-min.*1x' "${agent[@]}" --window-min 1x
refused 2 'ring-bytes' "${agent[@]}" --ring-bytes 5T
refused 3 'NT_WINDOW_MIN' env NT_WINDOW_MIN=never "${agent[@]}"
printf 'window-min: [1, 2\n' >"$work/broken.yaml"
refused 3 'broken.yaml' "${agent[@]}" --config "$work/broken.yaml"
printf 'windows: 1s\n' >"$work/unknown.yaml"
refused 3 'windows' "${agent[@]}" --config "$work/unknown.yaml"
refused 3 'none.yaml' "${agent[@]}" --config "$work/none.yaml"
refused 2 'resolve-afte' "${aggregator[@]}" --resolve-afte 1s
refused 2 'listen.*ADDRESS:PORT' "${aggregator[@]}" --listen nowhere
refused 3 'NT_LISTEN.*ADDRESS:PORT' env NT_LISTEN=0.0.0.0 "$PWD/$bin/neutracer-aggregator" --bus "spool:$work/spool"
refused 2 'user.*nosuch' "${aggregator[@]}" --user nosuch
refused 2 'bus.*carrier.*spool:DIR or kafka' "$PWD/$bin/neutracer-agent" --bus carrier:pigeon
refused 2 'cgroup.*/none' "${agent[@]}" --cgroup /none
refused 2 'incident' "$bin/neutracer" incident
echo "options: refused by name, value and range"

# Without root. The programs are copied to where nobody may reach them.
install -d -m 755 "$work/open"
chmod 755 "$work"
install -m 755 "$bin/neutracer-agent" "$work/open/agent"
install -d -m 777 "$work/open/spool"
refused 4 'root' setpriv --reuid 65534 --regid 65534 --clear-groups "$work/open/agent" --bus "spool:$work/open/spool"
echo "no root: refused"

# Without BTF: another mount in its place.
# shellcheck disable=SC2016 # for the inner shell
refused 4 'BTF' unshare --mount --propagation private bash -c \
  'mount -t tmpfs none /sys/kernel/btf 2>/dev/null || mount --bind "$0" /sys/kernel/btf; exec "$@"' "$work/control" "${agent[@]}"
echo "no BTF: refused"

# A bus that cannot be written, and a store that is none.
: >"$work/file"
refused 5 "$work/file" "$PWD/$bin/neutracer-agent" --bus "spool:$work/file"
refused 5 "$work/none.*does not exist" "$PWD/$bin/neutracer-aggregator" --bus "spool:$work/none" --store "$work/store.db" \
  --token-file "$work/token" --listen 127.0.0.1:0
chmod 755 "$work" "$work/spool"
as_root=("${aggregator[@]}" --store "$work/root.db")
timeout 20 "${as_root[@]}" >"$work/out/as-root" 2>&1 &
wait_until 20 "the store" test -s "$work/root.db" || fail "no store: $(cat "$work/out/as-root")"
kill %%
wait %% || :
refused 6 "root.db.*by another user.*chown" "${as_root[@]}" --user nobody
start_agent here
refused 5 "node 'here'.*another --node" "${agent[@]}" --node here
start_agent there
stop_agent there
stop_agent here
start_agent here
stop_agent here
echo "a second agent of a node, and a spool that is none: refused"
head -c 8192 /dev/urandom >"$work/bad.db"
refused 6 'bad.db' "${aggregator[@]}" --store "$work/bad.db"
echo "bus and store: refused"

# A full disk: the agent goes on, counts what it drops, and publishes again when there is room.
mkdir -p "$work/spool"
mount -t tmpfs -o size=256k none "$work/spool"
trap 'ended=$?; set +e; umount -l "$work/spool" 2>/dev/null; (exit "$ended"); cleanup' EXIT
head -c 240k /dev/zero >"$work/spool/filler"
start_agent full
start_job train 4
metric() { awk -v name="$1" '$1 == name || index($1, name "{") == 1 { sum += $2 } END { print sum + 0 }' "$work/agent-full.prom"; }
dropped() { [ "$(metric neutracer_agent_bus_dropped_full_total)" -gt 0 ]; }
wait_until 30 "records to be dropped" dropped || fail "a full disk was not noticed: $(cat "$work/agent-full.prom")"
kill -0 "${agent_pid[full]}" || fail "the agent ended on a full disk"
rm "$work/spool/filler"
grown() { [ "$(find "$work/spool" -name '*.seg' -printf '%s\n' | sort -n | tail -n 1)" -gt 32768 ]; }
wait_until 30 "records to be published again" grown || fail "nothing is published after the disk had room again"
[ "$(grep -c 'messages are lost' "$work/log/agent-full.log")" -eq 1 ] || fail "the full disk was not said just once"
end_job || fail "the job failed on the agent's full disk"
stop_agent full
umount "$work/spool"
trap cleanup EXIT
echo "full disk: counted, and over when there is room"

# A corrupt segment: what is whole before and behind it is read, the rest is counted.
start_agent here
start_job train 4
sleep 4
end_job || fail "the job failed"
stop_agent here
segment=$(find "$work/spool/neutracer.window.v1" -name '*.seg' -size +8k | sed -n 1p)
[ -n "$segment" ] || fail "there is no segment: $(find "$work/spool")"
"$bin/neutracer" analyze --json "$work/spool" >"$work/whole.json"
dd if=/dev/urandom of="$segment" bs=1 seek=6000 count=64 conv=notrunc status=none
"$bin/neutracer" analyze --json "$work/spool" >"$work/damaged.json" 2>"$work/damaged.txt"
[ "$(jq .missing_messages "$work/whole.json")" -eq 0 ] || fail "a whole recording misses messages"
[ "$(jq .missing_messages "$work/damaged.json")" -gt 0 ] || fail "a damaged segment went unnoticed"
[ "$(jq .ranks "$work/damaged.json")" -ge 4 ] || fail "a damaged segment hid the ranks"
name=${segment#"$work/spool/"}
[ "$(jq -r '.damage[].segment' "$work/damaged.json")" = "$name" ] ||
  fail "the damaged segment $name is not named: $(jq .damage "$work/damaged.json")"
grep -q "$name is damaged at 1 place: [0-9]* bytes" "$work/damaged.txt" ||
  fail "no warning names $name: $(cat "$work/damaged.txt")"
echo "corrupt segment: named, passed over and counted"

# The aggregator reads what it can of it too, and says where it could not: once.
start_aggregator --rewind 0
sleep 2
warnings=$(grep -c "segment '$name' is damaged" "$work/log/aggregator.log" || :)
[ "$warnings" -eq 1 ] || fail "the damaged segment is named $warnings times: $(cat "$work/log/aggregator.log")"
echo "corrupt segment: named once in the aggregator's log"

# Nothing but noise: damage, not an empty directory.
mkdir -p "$work/noise/neutracer.window.v1/0"
head -c 9000 /dev/urandom >"$work/noise/neutracer.window.v1/0/00000000000000000000.seg"
refused 8 'damaged.*00000000000000000000.seg: 9000 bytes' "$bin/neutracer" analyze "$work/noise"
