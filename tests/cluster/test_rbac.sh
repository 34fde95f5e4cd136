#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What the chart's service accounts may do is what the documentation says, by the API server's own
# account of it and by real requests with their tokens.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

up

# The objects alone: nothing has to run for this.
k create namespace "$space" >/dev/null
helm template neutracer "$chart" -n "$space" | k apply -n "$space" -f - >/dev/null
k create serviceaccount -n "$space" nobody >/dev/null

rules() { # rules ACCOUNT: what may be done beyond what everybody may
  k auth can-i --list --no-headers --as="system:serviceaccount:$space:$1" \
    --as-group=system:serviceaccounts --as-group=system:authenticated
}
rules nobody | sort >"$work/nobody"

# One line a rule: resources, non-resource URLs, names, verbs.
expect() { # expect ACCOUNT RULE...
  local account=$1 found wanted
  shift
  found=$(rules "$account" | sort | comm -23 - "$work/nobody" | tr -s ' ' | sed 's/ $//')
  wanted=$(printf '%s\n' "$@" | sort)
  [ "$found" = "$wanted" ] || fail "$account may: $found"$'\n'"wanted: $wanted"
  echo "$account: ${wanted:-nothing}"
}
expect neutracer-agent 'pods [] [] [list watch]'
expect neutracer-aggregator 'events [] [] [create]'
expect default

# answer TOKEN METHOD PATH: the status of a real request.
answer() {
  "$cluster" exec curl -s -o /dev/null -w '%{http_code}' --cacert "$state/certs/apiserver.crt" \
    -H "Authorization: Bearer $1" -H 'Content-Type: application/json' -X "$2" ${4:+-d "$4"} "https://10.99.0.1:6443$3"
}
try() { # try WANTED METHOD PATH [BODY]
  local found
  found=$(answer "$token" "${@:2}")
  [ "$found" = "$1" ] || fail "$2 $3 as the $who: $found, wanted $1"
  tried=$((tried + 1))
}
pod='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"name":"x","image":"x"}]}}'
event='{"apiVersion":"v1","kind":"Event","metadata":{"name":"x"},"involvedObject":{"kind":"Pod","namespace":"'$space'","name":"x"}}'
# What neither may.
nothing_else() {
  local path
  for path in secrets configmaps services serviceaccounts persistentvolumeclaims replicationcontrollers; do
    try 403 GET "/api/v1/$path"
    try 403 GET "/api/v1/namespaces/$space/$path"
  done
  for path in /api/v1/nodes /api/v1/nodes/node-1 /api/v1/nodes/node-1/proxy/pods /api/v1/namespaces \
    /apis/apps/v1/daemonsets /apis/batch/v1/jobs "/api/v1/namespaces/$space/pods/x/log" \
    /apis/rbac.authorization.k8s.io/v1/clusterroles; do
    try 403 GET "$path"
  done
  try 403 POST "/api/v1/namespaces/$space/pods" "$pod"
  try 403 PUT "/api/v1/namespaces/$space/pods/x" "$pod"
  try 403 PATCH "/api/v1/namespaces/$space/pods/x" '{}'
  try 403 DELETE "/api/v1/namespaces/$space/pods/x"
  try 403 POST "/api/v1/namespaces/$space/pods/x/eviction" '{}'
  try 403 POST "/api/v1/namespaces/$space/pods/x/exec?command=true"
  try 403 POST "/api/v1/namespaces/$space/serviceaccounts/default/token" '{}'
  try 403 PATCH /api/v1/nodes/node-1 '{}'
  try 403 PATCH /api/v1/nodes/node-1/status '{}'
  try 403 DELETE "/api/v1/namespaces/$space/events/x"
}

who=agent tried=0
token=$(k create token -n "$space" neutracer-agent)
try 200 GET '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1'
try 200 GET '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&watch=1&timeoutSeconds=1&allowWatchBookmarks=true'
try 403 GET "/api/v1/namespaces/$space/pods/x"
try 403 POST "/api/v1/namespaces/$space/events" "$event"
nothing_else
echo "requests as the agent: $tried, of which 2 were allowed"

who=aggregator tried=0
token=$(k create token -n "$space" neutracer-aggregator)
try 403 GET "/api/v1/namespaces/$space/pods/x"
try 201 POST "/api/v1/namespaces/$space/events" "$event"
try 403 GET /api/v1/pods
try 403 GET "/api/v1/namespaces/$space/events"
nothing_else
echo "requests as the aggregator: $tried, of which 1 was allowed"

# No other pod carries a token at all.
k get statefulset,job -n "$space" -o json | jq -e '[.items[] | select(.metadata.name != "neutracer-aggregator") |
  .spec.template.spec.automountServiceAccountToken] | all(. == false)' >/dev/null ||
  fail "a pod that asks the API server for nothing has a token"
