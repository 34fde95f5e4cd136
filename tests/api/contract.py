#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""contract.py VENV: the contract is valid OpenAPI, and the running server keeps it."""
import base64
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from server import Server

CONTRACT = "docs/api/openapi.yaml"


def served(server):
    url = f"http://127.0.0.1:{server.port}/openapi.yaml"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def long_targets(server):
    """Every operation answers a target that is too long with 414, whatever else it asks for."""
    path = None
    for line in pathlib.Path(CONTRACT).read_text().splitlines():
        if line == "components:":
            break
        if line.startswith("  /"):
            path = line.strip(" :").replace("{id}", "x").replace("{rank}", "1")
        elif path and line in ("    get:", "    post:", "    delete:"):
            asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            asked.request(line.strip(" :").upper(), f"{path}?limit={'1' * 5000}")
            answer = asked.getresponse()
            if answer.status != 414 or answer.headers["Content-Type"] != "application/problem+json":
                raise SystemExit(f"{path} answers a target that is too long with {answer.status}")
            asked.close()


def timelines(server):
    """The bytes of a timeline are as many as its rows and cells."""
    for query in ("", "?per_row=3", "?first=6&limit=1000", "?since=2026-11-21T02:59:52Z", "?first=4294967295"):
        asked = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/jobs/00000000000000a1/timeline{query}",
                                       headers={"Authorization": f"Bearer {server.token}"})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            timeline = json.load(answer)
        for series in ("own", "waiting", "excess"):
            size = len(base64.b64decode(timeline[series], validate=True))
            if size != len(timeline["row_ranks"]) * len(timeline["cells"]):
                raise SystemExit(f"timeline{query}: {size} bytes of {series}")


def main():
    tools = pathlib.Path(sys.argv[1]) / "bin"
    subprocess.run([tools / "openapi-spec-validator", CONTRACT], check=True)
    with tempfile.TemporaryDirectory() as directory, Server(directory, NT_STREAM_LIFE="1us") as server:
        if served(server) != pathlib.Path(CONTRACT).read_bytes():
            raise SystemExit(f"the server serves another contract than {CONTRACT}: rebuild it")
        long_targets(server)
        timelines(server)
        done = subprocess.run(
            [tools / "st", "--no-color", "run", pathlib.Path(CONTRACT).resolve(),
             "--url", f"http://127.0.0.1:{server.port}",
             "-H", f"Authorization: Bearer {server.token}",
             "--max-examples", "50", "--generation-deterministic"],
            cwd=directory)
        server.stop()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
