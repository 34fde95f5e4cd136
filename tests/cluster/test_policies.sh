#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The chart's NetworkPolicies, enforced: the whole works behind them, down to the webhook; the REST
# interface and the metrics answer those alone who are named in networkPolicy.from, by default nobody but the
# release's own pods, the evaluation Kafka the programs alone, and it reaches nobody. Without them, all of that
# is open.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

slow=3

up build/image/neutracer.tar build/cluster/kafka.tar build/cluster/rank.tar
python3 tests/cluster/policies.py "$cluster" >"$state/log/policies.log" 2>&1 8>&- &
enforcer=$!
echo $enforcer >"$state/pid/policies" # ends with the cluster

for name in "$space" friends training; do k create namespace "$name" >/dev/null; done
k create secret generic webhook -n "$space" --from-literal=url=http://receiver.training.svc:8080/ >/dev/null
k apply -n training -f tests/cluster/receiver.yaml >/dev/null
who() { # who NAMESPACE NAME: a pod that tries
  k run -n "$1" "$2" --image=neutracer.test/rank:1 --image-pull-policy=IfNotPresent --restart=Never \
    --overrides='{"apiVersion": "v1", "spec": {"terminationGracePeriodSeconds": 0}}' --command -- sleep 3600 >/dev/null
}
who friends friend
who training stranger
who "$space" neighbour # in the release's own namespace, but no part of it
sed "s|SHM|$state/shm|" tests/cluster/job.yaml | k apply -n training -f - >/dev/null
install --set aggregator.webhook.existingSecret=webhook \
  --set 'networkPolicy.from[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=friends'

# ---- all works ---------------------------------------------------------------------------------

ranks() { k exec -n "$space" neutracer-aggregator-0 -- neutracer jobs --json | jq '[.items[] | select(.name == "train").live] | add'; }
is_seen() { [ "$(ranks)" = 8 ]; }
told() { k exec -n training receiver -- cat /tmp/messages | jq -se "tostring | contains(\"train-$slow-\")" >/dev/null; }
wait_until 60 "the ranks to be seen" is_seen || fail "ranks: $(ranks)"
# Whoever reached Kafka before its address was known has to again.
"$cluster" exec conntrack -D -p tcp --dport 9092 >/dev/null 2>&1 || :
helm test neutracer -n "$space" --timeout 1m >"$work/test.log" 2>&1 || fail "helm test: $(cat "$work/test.log")"
echo "compute $slow 2" >"$state/shm/.faults" && mv "$state/shm/.faults" "$state/shm/faults"
wait_until 60 "the webhook" told || fail "the webhook says: $(k exec -n training receiver -- cat /tmp/messages)"
echo "behind its policies: 8 ranks seen, helm test passes, the webhook names the slow one"

# ---- and no more -------------------------------------------------------------------------------

address() { k get pod -n "$1" "$2" -o 'jsonpath={.status.podIP}'; }
service() { k get service -n "$space" "neutracer-$1" -o 'jsonpath={.spec.clusterIP}'; }
# The word of the operating system for what a connection came to.
connect() { # connect NAMESPACE POD ADDRESS PORT
  case $2 in
    neutracer-kafka-0) # there is no Python
      k exec -n "$1" "$2" -c kafka -- bash -c "exec 3<>/dev/tcp/$3/$4 && echo open" 2>&1 |
        sed -n '1{s/.*: No route to host$/EHOSTUNREACH/p;t;p}' || :
      ;;
    *)
      k exec -n "$1" "$2" -- python3 -c 'import errno, socket, sys
s = socket.socket()
s.settimeout(10)
error = s.connect_ex((sys.argv[1], int(sys.argv[2])))
print(errno.errorcode[error] if error else "open")' "$3" "$4"
      ;;
  esac
}
kafka_pod=$(address "$space" neutracer-kafka-0) receiver=$(address training receiver)
agent=$(address "$space" "$(component agent)")
tries() { # tries REFUSED: each line is who, whereto, and what is to be with policies
  local space_of pod to port wanted found
  while read -r space_of pod to port wanted; do
    [ "$wanted" = open ] || wanted=$1
    found=$(connect "$space_of" "$pod" "$to" "$port")
    [ "$found" = "$wanted" ] || fail "$pod of $space_of to $to:$port: $found, wanted $wanted"
  done <"$work/tries"
}
cat >"$work/tries" <<END
friends friend $(service aggregator) 9480 open
friends friend $agent 9481 open
friends friend $(service kafka) 9092 no
training stranger $(service aggregator) 9480 no
training stranger $agent 9481 no
training stranger $(service kafka) 9092 no
training stranger $kafka_pod 9092 no
training stranger $receiver 8080 open
$space neighbour $(service aggregator) 9480 no
$space neighbour $(service kafka) 9092 no
$space neutracer-kafka-0 $(service kafka) 9092 open
$space neutracer-kafka-0 $receiver 8080 no
$space neutracer-kafka-0 $(service aggregator) 9480 no
$space neutracer-kafka-0 10.96.0.1 443 no
END
k wait -n friends --for=condition=Ready pod/friend --timeout=60s >/dev/null
k wait -n training --for=condition=Ready pod/stranger --timeout=60s >/dev/null
k wait -n "$space" --for=condition=Ready pod/neighbour --timeout=60s >/dev/null
tries EHOSTUNREACH
echo "connections tried behind the policies: $(wc -l <"$work/tries"), of which $(grep -c ' no$' "$work/tries") were refused"

# With nobody named none of them comes in; what the chart itself asks does, as do probes and `kubectl exec`.
in_force=$(wc -l <"$state/log/policies.log")
helm upgrade neutracer "$chart" -n "$space" --reset-then-reuse-values --set-json 'networkPolicy.from=[]' \
  --wait --timeout 2m >"$work/upgrade.log" 2>&1 || fail "helm upgrade: $(cat "$work/upgrade.log")"
changed() { [ "$(wc -l <"$state/log/policies.log")" -gt "$in_force" ]; }
wait_until 30 "the policies to change" changed || fail "the policies did not change"
agent=$(address "$space" "$(component agent)")
cat >"$work/named" <<END
friends friend $(service aggregator) 9480 no
friends friend $agent 9481 no
$space neighbour $(service aggregator) 9480 no
$space neighbour $agent 9481 no
END
mv "$work/tries" "$work/kept" && mv "$work/named" "$work/tries"
tries EHOSTUNREACH
mv "$work/kept" "$work/tries"
[ "$(ranks)" = 8 ] || fail "the command in the aggregator's pod is not answered"
helm test neutracer -n "$space" --timeout 1m >"$work/test.log" 2>&1 || fail "helm test: $(cat "$work/test.log")"
k wait -n "$space" --for=condition=Ready pod/neutracer-aggregator-0 "pod/$(component agent)" --timeout=60s >/dev/null
echo "by default nobody but the release's own pods is admitted"
kill "$enforcer"
wait "$enforcer" || :
rm "$state/pid/policies"
"$cluster" exec nft delete table ip neutracer-policies
tries open
echo "without them all are open"
