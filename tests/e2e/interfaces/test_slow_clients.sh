#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Five addresses with 256 slow connections each keep no probe from its answer: of the aggregator, with
# TLS and without, and of the agent. NT_SLOW_SECONDS: how long each is attacked.
set -euo pipefail
# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

setup
need openssl python3
seconds=${NT_SLOW_SECONDS:-12}

attack() { # attack URL OPTION... PATH...
  tests/api/slow_clients.py --seconds "$seconds" "$@" || fail "$1 is starved by slow clients"
}

counted() { # counted FILE NAME: a metric that is not 0
  awk -v name="$2" '$1 == name && $2 > 0 { found = 1 } END { exit !found }' "$1"
}

start_aggregator
attack "http://127.0.0.1:$port" --token "$work/token" --ordinary /api/v1/jobs /healthz /metrics
api /metrics >"$work/metrics"
counted "$work/metrics" neutracer_aggregator_http_connections_over_limit_total || fail "no metric counts the attack"
counted "$work/metrics" neutracer_aggregator_http_connections_reaped_total || fail "no metric counts what was cut off"
stop "$agg_pid"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>"$work/log/openssl.log"
curl() { command curl --cacert "$work/cert.pem" "${@/http:/https:}"; }
start_aggregator --tls-cert-file "$work/cert.pem" --tls-key-file "$work/key.pem"
attack "https://127.0.0.1:$port" --ca "$work/cert.pem" --token "$work/token" --ordinary /api/v1/jobs /healthz /metrics
stop "$agg_pid"
agg_pid=''

# A cgroup without processes: this agent is about its front alone.
make_cgroup empty
front=$(free_port)
start_agent front --cgroup "$cgroup" --listen "127.0.0.1:$front"
attack "http://127.0.0.1:$front" --ordinary /readyz /healthz /metrics
command curl -sf "http://127.0.0.1:$front/metrics" >"$work/metrics"
counted "$work/metrics" neutracer_agent_http_connections_over_limit_total || fail "no metric counts the attack"
