#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""contract.py VENV: the contract is valid OpenAPI, and the running server keeps it."""
import http.client
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


def main():
    tools = pathlib.Path(sys.argv[1]) / "bin"
    subprocess.run([tools / "openapi-spec-validator", CONTRACT], check=True)
    with tempfile.TemporaryDirectory() as directory, Server(directory, NT_STREAM_LIFE="1us") as server:
        if served(server) != pathlib.Path(CONTRACT).read_bytes():
            raise SystemExit(f"the server serves another contract than {CONTRACT}: rebuild it")
        long_targets(server)
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
