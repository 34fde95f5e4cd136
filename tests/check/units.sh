#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The units of systemd keep their restrictions, and, where systemd-analyze can look at files (systemd
# 250), are well formed and no more exposed than they were.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

complain() {
  echo "$1"
  bad=1
}

# What both have, then what one has beside that.
restrictions() { # restrictions agent|aggregator
  cat <<'END'
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateMounts=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources @setuid @aio @keyring userfaultfd
UMask=0027
END
  case $1 in
    agent) echo 'CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SYS_ADMIN' ;;
    aggregator) printf '%s\n' CapabilityBoundingSet= User=neutracer ProtectProc=invisible RemoveIPC=yes ;;
  esac
}

# Tenths of the exposure that systemd 252 finds, and a little for what later ones look at.
declare -A most=([agent]=30 [aggregator]=15)

help=$(systemd-analyze --help 2>/dev/null || :)
for name in agent aggregator; do
  unit=deploy/systemd/neutracer-$name.service.in
  while IFS= read -r line; do
    grep -qxF -- "$line" "$unit" || complain "$unit: '$line' is missing"
  done < <(restrictions "$name")
  # It looks at the processes of all.
  if [ "$name" = agent ] && grep -E '^(ProtectProc|ProcSubset|PrivateUsers|PrivatePIDs)=' "$unit"; then
    complain "$unit: this hides the processes that the agent watches"
  fi

  [[ $help == *--offline* ]] || continue
  file=$work/neutracer-$name.service
  sed -e "s|^ExecStart=.*|ExecStart=$(command -v true)|" -e '/^Documentation=/d' "$unit" >"$file"
  # Names of system calls that an older libseccomp does not know are left out, as the unit says.
  systemd-analyze verify "$file" 2>&1 | grep "neutracer-$name.service" |
    grep -v 'Failed to parse system call, ignoring: uretprobe$\|Failed to parse system call, ignoring: uprobe$' >"$work/verify" || :
  [ ! -s "$work/verify" ] || complain "$unit: $(cat "$work/verify")"
  systemd-analyze security --offline=true --threshold="${most[$name]}" --no-pager "$file" >"$work/security" 2>&1 ||
    complain "$unit: $(tail -n 1 "$work/security"): over ${most[$name]} tenths"
  grep -q 'exposure level' "$work/security" || complain "$unit: systemd-analyze says nothing of it: $(tail -n 1 "$work/security")"
done
exit $bad
