#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The product at work in a Kubernetes: a real one of one node, brought up for this on this machine; the
# chart with its defaults, a real Kafka, a training job of eight pods over stand-in GPU libraries. One
# rank, drawn by chance, is made slow; the verdict comes through the Service, with a token, and a
# webhook reaches a pod. Then all of it is uninstalled.
#
# Ends with 0 only if the verdict named exactly that rank, its pod, container, namespace, node and job,
# with class compute, within ten seconds (--within), every time; and if nothing was left.
# shellcheck source=tests/cluster/lib.sh
cd "$(dirname "$0")/../.." && . tests/cluster/lib.sh

usage() {
  cat <<END
usage: deploy/demo/cluster.sh [options]
  --factor F    how many times as long the slow rank computes (drawn from 1.3 to 3)
  --rank N      which rank (drawn)
  --times N     install, accuse and uninstall so often (1)
  --seconds N   healthy seconds before the fault (8)
  --within N    seconds within which the verdict must come (10)
  --quiet       no story, only the verdicts
END
}

seconds=8 times=1 factor='' rank='' quiet='' ranks=8 within=10
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage && exit 0 ;;
    --quiet) quiet=1 && shift && continue ;;
    --factor | --rank | --times | --seconds | --within)
      [ $# -ge 2 ] || { echo "demo: '$1' needs a value" >&2 && exit 2; }
      printf -v "${1#--}" %s "$2"
      shift 2
      ;;
    *)
      echo "demo: unknown option '$1'" >&2
      usage >&2
      exit 2
      ;;
  esac
done
for value in "$seconds" "$times" "$within" "${rank:-0}"; do
  [[ $value =~ ^[0-9]+$ ]] || { echo "demo: '$value' is no number" >&2 && exit 2; }
done
[[ ${factor:-1.5} =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "demo: '$factor' is no factor" >&2 && exit 2; }

bold='' plain='' green=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m' green=$'\e[32m'; fi
print_line() { [ -n "$quiet" ] || printf '%s\n' "$*"; }
title() { [ -n "$quiet" ] || printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
in_seconds() { awk -v ms="$1" 'BEGIN { printf "%.1f s", ms / 1000 }'; }

fault() { # fault LINE...: replaces what stood; none: healthy
  k exec -n training "$(pod_of training batch.kubernetes.io/job-completion-index=0)" -- \
    sh -c 'printf "%s\n" "$@" >/dev/shm/.faults && mv /dev/shm/.faults /dev/shm/faults' - "$@"
}
job_is_seen() {
  [ "$(api /api/v1/jobs | jq "[.items[] | select(.state == \"running\" and .live == $ranks)] | length")" = 1 ]
}
firing() { slow=$(api /api/v1/slow-ranks | jq -c .items) && [ "$slow" != '[]' ]; }
# By the pod's uid, as `kubectl describe` looks for it.
is_event() {
  local uid
  uid=$(k get pod -n training "$1" -o 'jsonpath={.metadata.uid}')
  [ -n "$(k get events -n training --field-selector "involvedObject.uid=$uid,reason=ComputeSlow" -o name)" ]
}
is_received() { k exec -n training receiver -- test -s /tmp/messages; }

once() {
  local start begin took slow pod wanted found job message

  title "The chart"
  start=$(now_ms)
  k create namespace "$space" >/dev/null
  k create secret generic webhook -n "$space" --from-literal=url=http://receiver.training.svc:8080/ >/dev/null
  install --set aggregator.webhook.existingSecret=webhook --set aggregator.options.resolve-after=10s
  print_line "   helm install neutracer $chart: ready after $(in_seconds $(($(now_ms) - start)))."
  [ -n "$quiet" ] || k get pods -n "$space" -o wide | awk '{ print "   " $1, $2, $3 }' | column -t | sed 's/^/   /'

  title "A training job of $ranks pods"
  k create namespace training >/dev/null
  sed "s|SHM|$state/shm|" tests/cluster/job.yaml | k apply -n training -f - >/dev/null
  k apply -n training -f tests/cluster/receiver.yaml >/dev/null
  k wait -n training --for=condition=Ready pod -l app=train --timeout=90s >/dev/null || fail "the job does not start"
  k wait -n training --for=condition=Ready pod/receiver --timeout=60s >/dev/null || fail "the receiver does not start"
  print_line "   an Indexed Job, one rank a pod, over CPU stand-ins for the CUDA and NCCL libraries. No image, no"
  print_line "   environment and no label of it refers to NeuTracer."
  wait_until 40 "the ranks to be seen" job_is_seen || fail "jobs: $(api /api/v1/jobs)"
  print_line "   all $ranks ranks were found."

  title "Healthy for $seconds seconds"
  sleep "$seconds"
  ! firing || fail "somebody is accused although nobody is slow: $slow"
  print_line "   nobody is accused."

  rank_now=${rank:-$((SRANDOM % ranks))}
  factor_now=${factor:-$(awk -v n="$((SRANDOM % 1701))" 'BEGIN { printf "%.2f", 1.3 + n / 1000 }')}
  title "Now rank $rank_now computes $factor_now times as long"
  # Who it is comes from the API server alone.
  pod=$(pod_of training "batch.kubernetes.io/job-completion-index=$rank_now")
  fault "compute $rank_now $factor_now"
  begin=$(now_ms)
  wait_until "$((within + 20))" "the verdict" firing || fail "no verdict within $((within + 20)) s"
  took=$(($(now_ms) - begin))
  wanted=$(jq -cn --arg pod "$pod" --argjson rank "$rank_now" \
    '[["rank", $rank, "compute", $pod, "training", "rank", "node-1", "train"]]')
  found=$(jq -c '[.[] | [.kind, .rank, .class, .pod, .namespace, .container, .node, .job]]' <<<"$slow")
  title "The verdict, after $(in_seconds "$took") (GET /api/v1/slow-ranks at the Service, with the token)"
  [ -n "$quiet" ] || k exec -n "$space" "$(component aggregator)" -- neutracer slow-ranks | sed 's/^/   /'
  [ "$found" = "$wanted" ] || fail "wanted $wanted, found $found"
  [ "$took" -le $((within * 1000)) ] || fail "too late: the verdict came after $took ms, not within $within s"

  wait_until 20 "the webhook" is_received || fail "the webhook does not arrive"
  message=$(k exec -n training receiver -- head -n 1 /tmp/messages)
  jq -e --arg pod "$pod" 'tostring | contains($pod)' <<<"$message" >/dev/null || fail "the webhook says: $message"
  print_line "   the webhook has reached the pod 'receiver'."
  wait_until 10 "the Event" is_event "$pod" || fail "there is no Event on the pod"
  [ -n "$quiet" ] || k get events -n training --field-selector "involvedObject.name=$pod,type=Warning" \
    -o 'custom-columns=EVENT:.reason,OBJECT:.involvedObject.name,MESSAGE:.message' | sed 's/^/   /'

  title "helm uninstall"
  k delete secret webhook -n "$space" >/dev/null # ours, not the chart's
  job=$(k get pods -n training -l app=train --field-selector status.phase=Running -o name | wc -l)
  [ "$job" = "$ranks" ] || fail "pods of the job that run: $job, of $ranks"
  uninstall
  print_line "   no object, no pod, no program in the kernel is left; the job runs on."
  k delete namespace training "$space" >/dev/null
  rm -f "$state/shm/faults"
  echo "${green}right: rank $rank_now ($factor_now times as long), pod $pod, after $(in_seconds "$took")$plain"
}

title "A Kubernetes of one node"
start=$(now_ms)
up build/image/neutracer.tar build/cluster/kafka.tar build/cluster/rank.tar
print_line "   $("$cluster" kubectl version | sed -n 's/^Server Version: //p'), with kubelet, containerd, Services and DNS, in a network"
print_line "   namespace; up, with three images, after $(in_seconds $(($(now_ms) - start)))."
for ((i = 0; i < times; i++)); do once; done
