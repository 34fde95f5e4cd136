#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# An agent in a pod, with exactly the capabilities that the documentation names, attaches its probes to
# a library in the file system of another pod. With one less it does not, and says why.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up build/image/neutracer.tar build/cluster/rank.tar

agent_pod() { # agent_pod NAME CAPABILITY,...
  cat <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: agent}}
spec:
  hostPID: true
  restartPolicy: Never
  terminationGracePeriodSeconds: 20
  containers:
    - name: agent
      image: $(sed -n 's/^#define NT_VERSION "\(.*\)"$/neutracer:\1/p' common/base/version.h)
      command: [neutracer-agent, --bus, "spool:/spool", --metrics-file, /spool/metrics]
      securityContext:
        runAsUser: 0
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL], add: [$2]}
      volumeMounts: [{name: spool, mountPath: /spool}]
  volumes: [{name: spool, emptyDir: {}}]
END
}

sed "s|SHM|$state/shm|" tests/cluster/job.yaml | k apply -f - >/dev/null
agent_pod agent BPF,PERFMON,SYS_PTRACE,DAC_READ_SEARCH | k apply -f - >/dev/null
# One less each time. DAC_READ_SEARCH is what reading the environment of another user's process takes.
agent_pod no-bpf PERFMON,SYS_PTRACE,DAC_READ_SEARCH | k apply -f - >/dev/null
agent_pod no-perfmon BPF,SYS_PTRACE,DAC_READ_SEARCH | k apply -f - >/dev/null
agent_pod no-ptrace BPF,PERFMON,DAC_READ_SEARCH | k apply -f - >/dev/null
agent_pod no-dac BPF,PERFMON,SYS_PTRACE | k apply -f - >/dev/null
k wait --for=condition=Ready pod/agent --timeout=60s >/dev/null || fail "the agent's pod does not start"

metric() { # metric POD NAME
  k exec "$1" -- sed -n "s/^neutracer_agent_$2 //p" /spool/metrics 2>/dev/null || :
}
sees_ranks() { [ "$(metric agent ranks)" = 8 ]; }
measures() { [ "$(metric agent steps_total)" -gt 80 ]; }
ended() { [[ $(k get pod "$1" -o 'jsonpath={.status.phase}') =~ ^(Failed|Succeeded)$ ]]; }

wait_until 60 "the agent to see the ranks" sees_ranks || fail "ranks seen: $(metric agent ranks), of 8"
wait_until 30 "steps" measures || fail "steps measured: $(metric agent steps_total)"
pid=$(pid_of default agent neutracer-agent) || fail "there is no agent in its pod"
grep -q '^CapEff:.000000c000080004$' "/proc/$pid/status" || fail "$(grep ^Cap "/proc/$pid/status")"
grep -q '^CapBnd:.000000c000080004$' "/proc/$pid/status" || fail "$(grep ^Cap "/proc/$pid/status")"
grep -q '^NoNewPrivs:.1$' "/proc/$pid/status" || fail "the agent could gain privileges"
! k exec agent -- touch /somewhere 2>/dev/null || fail "the agent's root can be written"
echo "attached to $(metric agent attached_files) libraries of other pods, $(metric agent attached_probes) functions"

# Whoever cannot load programs ends at once and says what it needs.
for pod in no-bpf no-perfmon; do
  wait_until 30 "$pod to end" ended "$pod" || fail "$pod goes on: $(k logs "$pod")"
  code=$(k get pod "$pod" -o 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}')
  [ "$code" = 4 ] || fail "$pod ended with $code: $(k logs "$pod")"
  [[ $(k logs "$pod") == *CAP_* ]] || fail "$pod does not say what it needs: $(k logs "$pod")"
done
# Who can, but may not look into processes, watches and sees none, and counts that. Who may not read as
# another user finds ranks by what they call, but not who they are.
[ "$(metric no-ptrace ranks)" = 0 ] || fail "without SYS_PTRACE there are ranks: $(metric no-ptrace ranks)"
[ "$(metric no-ptrace discovery_unreadable_total)" -ge 8 ] || fail "unreadable processes are not counted"
[ "$(metric no-dac processes_undescribed_total)" = 8 ] ||
  fail "without DAC_READ_SEARCH: $(metric no-dac processes_undescribed_total) processes could not be described, of 8"

bpf_of "$pid" >"$work/bpf"
[ "$(grep -c link "$work/bpf")" -ge 2 ] || fail "the agent has no links: $(cat "$work/bpf")"
k delete pod -l app=agent --wait=true >/dev/null
wait_until 40 "the probes to go" bpf_is_gone "$work/bpf" || fail "probes are left in the kernel"
echo "gone with the pod: $(wc -l <"$work/bpf") programs, maps and links"
