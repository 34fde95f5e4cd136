#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The agent's watch of pods at scale, on nodes that kwok plays: a hundred watchers and ten thousand
# pods, a node that is full and changes all the time, and an API server that is away for a minute.
# shellcheck source=tests/cluster/lib.sh
. tests/cluster/lib.sh

bin=${NT_BIN:-build/release/bin}
programs=${NT_CLUSTER_PROGRAMS:-build/release/test-cluster}
reason=$("$cluster" build-kwok 2>&1) || skip "${reason#*: }"
[ -x "$programs/watchers" ] || skip "there is no $programs/watchers: 'make test-cluster' builds it"
up

# With the rights of the agent's account, and as one of many clients.
k create namespace "$space" >/dev/null
helm template neutracer "$chart" -n "$space" --show-only templates/rbac.yaml | k apply -n "$space" -f - >/dev/null
k create token -n "$space" neutracer-agent >"$work/token"
# Of the rest of the cluster nothing is asked here, and it would take most of a small machine.
for program in controllers scheduler proxy dns; do "$cluster" kill "$program"; done
"$cluster" start kwok 8>&-
"$cluster" exec python3 tests/cluster/scale.py "$cluster" "$state" "$programs/watchers" "$bin/neutracer-agent" "$work" 8>&- ||
  { tail -n 5 "$state"/log/kwok.log >&2 && exit 1; }
