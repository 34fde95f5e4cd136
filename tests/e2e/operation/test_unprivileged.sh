#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# As installed: the agent is root with the capabilities of its unit and no more, the aggregator is
# nobody, and the job is a stranger's, in a directory of the stranger's own. Its slow rank is named;
# agent and aggregator read each other, neither writes what is the other's, and nobody else reads any.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

stranger=64000
account=(passwd group)

setup
chmod 711 "$work"
root=$work/root state=$work/root/var/lib/neutracer
spool=$state/spool

as() { # as UID GID COMMAND...
  setpriv --reuid "$1" --regid "$2" --clear-groups "${@:3}"
}

# ---- what `make install` makes, with the uid and gid of nobody for the account --------------------

uid=$(id -u nobody) gid=$(id -g nobody)
mkdir -p "$root/etc"
for file in "${account[@]}"; do echo "neutracer:x:$uid:$gid:::" >"$root/etc/$file"; done
sed -i "s/:.*/:x:$gid:/" "$root/etc/group"
deploy/systemd/setup.sh "$root"

# The programs as the units start them: wrapped where lib.sh looks for them.
real=$PWD/$bin bin=$work/bin
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' deploy/systemd/neutracer-agent.service.in | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
[ -n "$capabilities" ] || fail "the agent's unit has no capabilities"
mkdir "$bin"
cat >"$bin/neutracer-agent" <<END
#!/bin/bash
umask 0027
# As ProtectHome and PrivateDevices of its unit have it: without the directory of the job, without devices.
mount -t tmpfs -o ro,mode=000 none "$work/job"
mount -t tmpfs -o mode=755 none /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/urandom c 1 9
exec setpriv --regid $gid --clear-groups --no-new-privs --bounding-set "-all,$capabilities" "$real/neutracer-agent" "\$@" --bus "spool:$spool"
END
cat >"$bin/neutracer-aggregator" <<END
#!/bin/bash
exec "$real/neutracer-aggregator" "\$@" --user nobody --bus "spool:$spool" --store "$state/store.db" --token-file "$state/token"
END
chmod +x "$bin"/*
ln -s "$state/token" "$work/token"

# The job's programs and libraries, for its owner's eyes only.
cp -r "$sim" "$work/job"
rm -rf "$work/job/obj"
chown -R "$stranger:$stranger" "$work/job" "$control"
chmod 700 "$work/job"
mv "$work/job/launch" "$work/job/launch.real"
sim=$work/job
cat >"$sim/launch" <<END
#!/bin/bash
exec setpriv --reuid $stranger --regid $stranger --clear-groups "$sim/launch.real" "\$@"
END
chmod 755 "$sim/launch"

# ---- a verdict ------------------------------------------------------------------------------------

start_aggregator --resolve-after 10s
stay_apart
start_agent here
umask 0 # the job's directories are for the job to write; what the spool makes has its own modes
start_job train 4
umask 022
seen 4
[ "$(stat -c %u "/proc/$(children_of "$job_pid" | awk '{ print $1 }')")" = $stranger ] || fail "the job is no stranger's"
sleep 5
rank=$(draw 4)
fault "compute $rank 2"
expect 60 "a stranger's job" compute "$rank"

# ---- who can do what ------------------------------------------------------------------------------

status() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
[ "$(status "$agg_pid" Uid) $(status "$agg_pid" CapEff) $(status "$agg_pid" CapPrm)" = "$uid 0000000000000000 0000000000000000" ] ||
  fail "the aggregator is not nobody, or has capabilities"
[ "$(status "${agent_pid[here]}" CapBnd)" = "$(status "${agent_pid[here]}" CapEff)" ] || fail "the agent is not root"

has_segment() { [ -n "$(find "$spool/neutracer.$1.v1" -name '*.seg' -user "$2" -group "$gid" -perm 640)" ]; }
for topic in window node; do
  has_segment $topic 0 || fail "no segment of topic $topic: $(find "$spool" -ls)"
done
wait_until 40 "the incident on the bus" has_segment incident "$uid" || fail "no segment of topic incident: $(find "$spool" -ls)"

open_to_all=$(find "$state" -perm /007)
[ -z "$open_to_all" ] || fail "others may get at $open_to_all"
segment=$(find "$spool/neutracer.incident.v1" -name '*.seg' | sed -n 1p)
refuses() { ! "$@" 2>/dev/null >&2 || fail "this works: $*"; }
refuses as $stranger $stranger ls "$state"
refuses as $stranger $stranger cat "$segment"
refuses as "$uid" "$gid" touch "$spool/neutracer.window.v1/here"
refuses as "$uid" "$gid" touch "$spool/here"
refuses as "$uid" "$gid" mv "$spool" "$state/elsewhere"
setpriv --regid "$gid" --clear-groups --bounding-set "-all,$capabilities" cat "$segment" >/dev/null ||
  fail "the agent cannot read what the aggregator writes"
refuses setpriv --regid "$gid" --clear-groups --bounding-set "-all,$capabilities" touch "$spool/neutracer.control.v1/here"

command_names() {
  "$real/neutracer" slow-ranks --server "http://127.0.0.1:$port" --token-file "$state/token" --json |
    jq -e --argjson rank "$rank" '[.. | objects | select(.rank? == $rank)] | length > 0' >/dev/null
}
# The pictures that it shows are drawn twice a second.
wait_until 40 "the command to name rank $rank" command_names || fail "the command does not name rank $rank"
stop_agent here
end_job || fail "the job failed"
echo "agent with ${capabilities//,/ }, aggregator as nobody: rank $rank named, nothing open to others"
