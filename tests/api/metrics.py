#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""/metrics of both programs in both formats, right for promtool and for the strict parser of OpenMetrics:
metrics.py PROMTOOL."""
import os
import subprocess
import sys
import tempfile
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from server import Server

OPENMETRICS = "application/openmetrics-text"
# What Prometheus 2 and 3 send.
ACCEPTS = (
    f"{OPENMETRICS};version=1.0.0,{OPENMETRICS};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.5,{OPENMETRICS};version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
)


AGENT = os.environ.get("NT_AGENT_METRICS", "build/release/test/agent-metrics")


def scrape(port, token, accept, query=""):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics{query}",
        headers={"Authorization": f"Bearer {token}", "Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(families):
    """Samples by name and labels; none may be there twice, and each has help."""
    found = {}
    for family in families:
        assert family.documentation, f"{family.name} has no help"
        for sample in family.samples:
            key = sample.name, *sorted(sample.labels.items())
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def check_formats(port, token, units, query=""):
    """units: some families with theirs."""
    kind, plain = scrape(port, token, "text/plain", query)
    assert kind.startswith("text/plain; version=0.0.4"), kind
    assert "# EOF" not in plain and "# UNIT" not in plain
    text = samples(parse_text(plain))
    for accept in ACCEPTS:
        kind, openmetrics = scrape(port, token, accept, query)
        assert kind.startswith(f"{OPENMETRICS}; version=1.0.0"), kind
        families = list(parse_openmetrics(openmetrics))
        assert set(samples(families)) == set(text)
        stated = {family.name: family.unit for family in families if family.unit}
        assert units.items() <= stated.items(), stated
    return plain, text


def ranks_of(found, job):
    return {dict(key[1:])["rank"] for key in found
            if key[0] == "neutracer_rank_steps_total" and dict(key[1:])["job_id"] == job}


def check_agent():
    with subprocess.Popen([AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        plain, found = check_formats(int(agent.stdout.readline()), "", {
            "neutracer_agent_cpu_seconds": "seconds", "neutracer_agent_resident_bytes": "bytes"})
        agent.stdin.close()
    assert len(found) > 100
    return plain


def check_aggregator():
    units = {"neutracer_rank_own_work_seconds": "seconds", "neutracer_rank_copied_bytes": "bytes"}
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        plain, found = check_formats(server.port, server.token, {**units, "neutracer_job_slowdown_ratio": "ratio"})
        assert ranks_of(found, "00000000000000a1") == {"0", "1", "5"}, "culprits and nobody else"
        hostile = {dict(key[1:])["job_name"] for key in found if key[0] == "neutracer_job_state"}
        assert "\ufffd<b>\"evil\"\x1b[31m" in hostile, hostile
        ranks, requested = check_formats(server.port, server.token, units, "?ranks=llm-70b")
        assert ranks_of(requested, "00000000000000a1") == {str(rank) for rank in range(8)}
        assert all(key[0].startswith(("neutracer_rank_", "neutracer_gpu_", "neutracer_function_",
                                      "neutracer_aggregator_series_")) for key in requested)
        server.stop()
    return plain, ranks


def main():
    for text in (check_agent(), *check_aggregator()):
        done = subprocess.run([sys.argv[1], "check", "metrics"], input=text, text=True)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
