#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `make install DESTDIR=` puts programs, libraries, manual pages, completions and units where they belong,
# and nothing else; the directories for agent and aggregator have the owners and modes that let each write
# its own part, read the other's, and let nobody else do either.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MAKELEVEL
make -s install DESTDIR="$root" PREFIX=/usr >"$root.log" 2>&1 || report "make install fails: $(cat "$root.log")"
rm -f "$root.log"

for name in neutracer-agent neutracer-aggregator neutracer; do
  directory=sbin section=8
  [ "$name" != neutracer ] || directory=bin section=1
  [ -x "$root/usr/$directory/$name" ] || report "no $directory/$name"
  [ -s "$root/usr/share/man/man$section/$name.$section" ] || report "no manual of $name"
  bash -n "$root/usr/share/bash-completion/completions/$name" || report "the completion of $name is no bash"
  grep -q "^#compdef $name\$" "$root/usr/share/zsh/site-functions/_$name" || report "no zsh completion of $name"
  grep -q "^complete -c $name " "$root/usr/share/fish/vendor_completions.d/$name.fish" || report "no fish completion of $name"
  [ "$("$root/usr/$directory/$name" --version | cut -d' ' -f1)" = "$name" ] || report "$name does not run"
done
# Jobs of any user load them.
for name in libneutracer-cupti.so libnccl-profiler-neutracer.so; do
  library=$root/usr/lib/neutracer/$name
  [ "$(stat -c '%a' "$library" "${library%/*}" 2>/dev/null | xargs)" = '644 755' ] ||
    report "$name is not there for all users: $(stat -c '%n %a' "$library" "${library%/*}" 2>&1)"
done
python3 -c 'import ctypes, sys
ctypes.CDLL(sys.argv[1] + "/libnccl-profiler-neutracer.so").ncclProfiler_v7
sys.exit(ctypes.CDLL(sys.argv[1] + "/libneutracer-cupti.so").InitializeInjection() != 1)' "${library%/*}" ||
  report "the libraries of $root/usr/lib/neutracer cannot be loaded"
while IFS= read -r file; do
  case ${file#"$root"} in
    /usr/lib/neutracer/libneutracer-cupti.so | /usr/lib/neutracer/libnccl-profiler-neutracer.so) ;;
    /usr/sbin/* | /usr/bin/* | /usr/share/man/man[18]/* | /usr/share/bash-completion/completions/* | \
      /usr/share/zsh/site-functions/_* | /usr/share/fish/vendor_completions.d/neutracer*.fish | /usr/lib/systemd/system/neutracer-*.service | \
      /usr/lib/sysusers.d/neutracer.conf | /usr/lib/tmpfiles.d/neutracer.conf) ;;
    *) report "${file#"$root"} should not be installed" ;;
  esac
done < <(find "$root" -type f)

# The units start what was installed.
for name in neutracer-agent neutracer-aggregator; do
  unit=$root/usr/lib/systemd/system/$name.service
  [ "$(sed -n 's/^ExecStart=//p' "$unit")" = "/usr/sbin/$name" ] || report "$name.service does not start /usr/sbin/$name"
  ! grep -q "@[a-z]*@" "$unit" || report "$name.service has a place that was not filled in: $(grep "@[a-z]*@" "$unit")"
done
grep -qx 'u neutracer .*' "$root/usr/lib/sysusers.d/neutracer.conf" || report "sysusers.d makes no account"

# Directories: who writes what is told by the topic. The spool's place is no one's to take but root's.
state=/var/lib/neutracer
layout() { # layout OURS [THEIRS [ROOT]]: path, mode, user:group of each; THEIRS: the aggregator's
  echo "$state 1770 $1"
  echo "$state/shelter 750 ${3:-$1}"
  echo "$state/spool 2750 $1"
  local topic
  sed -n 's/.*"\(neutracer\.[a-z]*\.v1\)".*/\1/p' common/bus/bus.c | while read -r topic; do
    case $topic in
      neutracer.window.v1 | neutracer.node.v1 | neutracer.detail.v1) echo "$state/spool/$topic 2750 $1" ;;
      *) echo "$state/spool/$topic 2750 ${2:-$1}" ;;
    esac
  done
}
found() { # found ROOT: the same of what is there
  find "$1/var" -mindepth 2 -path "*$state*" -printf '%p %m %U:%G\n' | sed "s|^$1||"
}
same() { # same WHAT ROOT LAYOUT
  local difference
  difference=$(diff <(sort <<<"$3") <(found "$2" | sort)) || report "$1: $difference"
}
same "directories" "$root" "$(layout "$(id -u):$(id -g)")"
[ "$(grep -c . <<<"$(layout x)")" -eq 10 ] || report "the topics of common/bus/bus.c cannot be read"
grep -v '^#' "$root/usr/lib/tmpfiles.d/neutracer.conf" | awk '{ sub(/^0/, "", $3); print $2, $3, $4 ":" $5 }' | sort |
  diff <(layout root:neutracer neutracer:neutracer root:root | sort) - || report "tmpfiles.d makes other directories"
if [ "$(id -u)" -eq 0 ]; then
  # An image that has the account: owners too. Twice, for what is there already keeps to it.
  image=$root/image
  mkdir -p "$image/etc"
  echo 'neutracer:x:64001:64002::/:/usr/sbin/nologin' >"$image/etc/passwd"
  echo 'neutracer:x:64002:' >"$image/etc/group"
  for _ in 1 2; do
    deploy/systemd/setup.sh "$image"
    same "directories of an image" "$image" "$(layout 0:64002 64001:64002 0:0)"
    chmod 755 "$image$state/spool"
    chown 0:0 "$image$state/spool/neutracer.incident.v1"
  done
fi
if command -v systemd-tmpfiles >/dev/null && [ "$(id -u)" -eq 0 ]; then
  rm -rf "${image:?}/var"
  systemd-tmpfiles --root="$image" --create "$PWD/deploy/systemd/neutracer.tmpfiles" 2>"$root/tmpfiles.log" ||
    report "systemd-tmpfiles: $(cat "$root/tmpfiles.log")"
  rm -f "$root/tmpfiles.log"
  same "directories that systemd-tmpfiles makes" "$image" "$(layout 0:64002 64001:64002 0:0)"
fi

# On a machine where both ran as root before: the account is made, and what is there is given to it. In
# a mount namespace, where this machine's /etc and /var/lib are others.
# shellcheck disable=SC2317 # called by a shell of its own
adopts() { # adopts DIR
  mount -t tmpfs none "$1" && cp -a /etc "$1/etc" && mkdir "$1/lib" "$1/run" &&
    sed -i '/^neutracer:/d' "$1"/etc/{passwd,group,shadow,gshadow} &&
    mount --bind "$1/etc" /etc && mount --bind "$1/lib" /var/lib && mount --bind "$1/run" /run || return
  local state=/var/lib/neutracer topic
  umask 027
  for topic in window incident; do
    mkdir -p "$state/spool/neutracer.$topic.v1/0"
    : >"$state/spool/neutracer.$topic.v1/0/1.seg"
  done
  : >"$state/store.db"
  : >"$state/agent.prom"
  deploy/systemd/setup.sh && deploy/systemd/setup.sh || return
  find "$state" -mindepth 1 -maxdepth 1 -type f -printf '%f %U:%G\n' | sort
  find "$state/spool" -path '*/0*' -printf '%P %m %U:%G\n' | sort
}
if [ "$(id -u)" -eq 0 ] && command -v useradd >/dev/null && unshare --mount true 2>/dev/null; then
  export -f adopts
  mkdir "$root/copies"
  # shellcheck disable=SC2016 # for the inner shell
  adopted=$(unshare --mount --propagation private bash -c 'adopts "$0"; id -u neutracer; id -g neutracer' "$root/copies" 2>&1)
  gid=$(tail -n 1 <<<"$adopted") uid=$(tail -n 2 <<<"$adopted" | head -n 1)
  [ "$adopted" = "agent.prom 0:0
store.db $uid:$gid
neutracer.incident.v1/0 750 $uid:$gid
neutracer.incident.v1/0/1.seg 640 $uid:$gid
neutracer.window.v1/0 2750 0:$gid
neutracer.window.v1/0/1.seg 640 0:$gid
$uid
$gid" ] || report "what was there already: $adopted"
fi

# Completing really offers the commands and the options of one.
words() {
  bash --norc -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _nt_neutracer; echo "${COMPREPLY[@]}"' \
    bash "$root/usr/share/bash-completion/completions/neutracer" "$@"
}
case " $(words neutracer s) " in *' slow-ranks '*) ;; *) report "'neutracer s' completes to '$(words neutracer s)'" ;; esac
case " $(words neutracer jobs --js) " in *' --json '*) ;; *) report "'neutracer jobs --js' completes to nothing" ;; esac
# What was installed goes; data stay.
make -s uninstall DESTDIR="$root" PREFIX=/usr >/dev/null || report "make uninstall fails"
left=$(find "$root/usr" -type f)
[ -z "$left" ] || report "make uninstall leaves: $left"
[ -d "$root$state/spool" ] || report "make uninstall removes data"
exit $bad
