#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real Prometheus scrapes a real aggregator, the REST interface over a scene with culprits, and the agent's table
# of metrics. Rules load and pass their tests, and every query of the dashboards has data.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh
# shellcheck source=tests/e2e/prometheus.sh
. tests/e2e/prometheus.sh

monitoring=deploy/helm/neutracer/monitoring
feeder=${NT_FEEDER:-build/release/test-kafka/feeder}
api_server=${NT_API_SERVER:-build/release/test/api-server}
agent_metrics=${NT_AGENT_METRICS:-build/release/test/agent-metrics}
[ "$(id -u)" -eq 0 ] || skip "root: the aggregator runs in a mount namespace of its own"
fetch_prometheus || skip "debian: the package prometheus cannot be fetched"
need "$bin/neutracer-aggregator" "$feeder" "$api_server" "$agent_metrics" curl jq unshare python3

"$promtool" check rules "$monitoring"/*.yaml >/dev/null
"$promtool" test rules tests/prometheus/alerts.yaml >/dev/null ||
  { "$promtool" test rules tests/prometheus/alerts.yaml >&2; fail "the rules do not do what their test says"; }

work=$(mktemp -d "${TMPDIR:-/tmp}/neutracer-XXXXXX")
control=$work/control # for start_aggregator
mkdir "$control" "$work/log" "$work/spool" "$work/feed" "$work/scene"
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

mkfifo "$work/input" # both servers end with it
NT_SCORES=1 "$api_server" "$work/scene" <"$work/input" >"$work/scene.port" 2>"$work/log/scene.log" &
children+=($!)
"$agent_metrics" <"$work/input" >"$work/agent.port" 2>"$work/log/agent.log" &
children+=($!)
exec 9>"$work/input"
echo 0 >"$work/feed/faults"
"$feeder" "spool:$work/spool" 2 "$work/feed" 2>"$work/log/feeder.log" &
children+=($!)
start_aggregator --save-every 1s
wait_until 20 "the servers" test -s "$work/scene.port" -a -s "$work/agent.port" || fail "no servers"

for of in "$work" "$work/scene"; do write_bearer "$of/token" "$of/bearer"; done
write_rules "$work"
cat >"$work/prometheus.yaml" <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$work/rules.yaml", "$work/job-alerts.yaml"]
scrape_configs:
  - job_name: aggregator
    authorization: {credentials_file: "$work/bearer"}
    static_configs: [{targets: ["127.0.0.1:$port"]}]
  - job_name: scene
    authorization: {credentials_file: "$work/scene/bearer"}
    static_configs: [{targets: ["127.0.0.1:$(cat "$work/scene.port")"]}]
  - job_name: ranks
    params: {ranks: [llm-70b]}
    authorization: {credentials_file: "$work/scene/bearer"}
    static_configs: [{targets: ["127.0.0.1:$(cat "$work/scene.port")"]}]
  - job_name: agent
    static_configs: [{targets: ["127.0.0.1:$(cat "$work/agent.port")"], labels: {node: gpu-01}}]
CONFIG
# The example of the manual.
mkdir "$work/manual"
cp "$monitoring"/*.yaml "$work/bearer" "$work/manual"
mv "$work/manual/bearer" "$work/manual/neutracer.token"
# shellcheck disable=SC2016 # the fence of a code block
sed -n '/^```yaml$/,/^```$/{/^```/!p}' docs/metrics.md >"$work/manual/prometheus.yml"
"$promtool" check config "$work/manual/prometheus.yml" >/dev/null || fail "the example of docs/metrics.md"
"$promtool" check config "$work/prometheus.yaml" >/dev/null || fail "$("$promtool" check config "$work/prometheus.yaml" 2>&1)"
web=$(free_port)
(run_prometheus "$web" "$work/prometheus.yaml" "$work/data" >"$work/log/prometheus.log" 2>&1) &
children+=($!)

has() { # has COUNT QUERY: the number that Prometheus answers is at least COUNT
  curl -sf "http://127.0.0.1:$web/api/v1/query" --data-urlencode "query=$2" |
    jq -e "(.data.result[0].value[1] // \"0\" | tonumber) >= $1" >/dev/null
}
wait_until 20 "Prometheus to scrape" has 4 'count(up == 1)' || fail "$(curl -s "http://127.0.0.1:$web/api/v1/targets")"
wait_until 20 "the jobs of the feeder" has 2 'sum(neutracer_aggregator_jobs{state="running"})' || fail "no jobs"
wait_until 20 "samples for rates" has 3 'min(count_over_time(up[10s]))' || fail "no samples"
wait_until 20 "the rules" has 1 'count(job:neutracer_ranks_lost:sum)' || fail "no rule is evaluated"
python3 tests/prometheus/queries.py "http://127.0.0.1:$web" "$monitoring" || fail "the dashboards"

for target in "$work $port" "$work/scene $(cat "$work/scene.port")" "$work/scene $(cat "$work/agent.port")"; do
  curl -sf -H "Authorization: Bearer $(cat "${target% *}/bearer")" "http://127.0.0.1:${target##* }/metrics" |
    "$promtool" check metrics >&2 || fail "promtool refuses the metrics of $target"
done

# A unit is known only if the scrape was OpenMetrics, in which a counter is named without _total.
curl -sf "http://127.0.0.1:$web/api/v1/metadata?metric=neutracer_rank_copied_bytes" |
  jq -e '.data[][0] | .type == "counter" and .unit == "bytes" and (.help | test("copied"))' >/dev/null || fail "no metadata"
[ "$(curl -sf "http://127.0.0.1:$web/api/v1/query" --data-urlencode 'query=count(neutracer_rank_observed{job="ranks"})' |
  jq -r '.data.result[0].value[1]')" -eq 8 ] || fail "not each rank has series on request"
