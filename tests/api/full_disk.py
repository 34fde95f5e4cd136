#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A disk that is full and has room again. Needs root and a mount namespace of its own."""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

from server import Server


def get(server, path):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}",
                                     headers={"Authorization": f"Bearer {server.token}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def store_check(server):
    status, body = get(server, "/readyz")
    return status, next(c for c in json.loads(body)["checks"] if c["name"] == "store")


def fill(path):
    with open(path, "wb", buffering=0) as junk:
        try:
            while True:
                junk.write(b"x" * 4096)
        except OSError:
            pass


def check(server, disk):
    assert store_check(server) == (200, {"name": "store", "ok": True, "detail": None})
    fill(disk / "junk")
    # The log may still have room for some.
    refused = next(i for i in range(100000) if not server.put("firing", f"full-{i}"))
    status, why = store_check(server)
    assert status == 503 and not why["ok"] and "disk is full" in why["detail"], (status, why)
    assert get(server, "/healthz")[0] == 200
    assert len(json.loads(get(server, "/api/v1/slow-ranks")[1])["items"]) == 2
    assert get(server, f"/api/v1/incidents/full-{refused}")[0] == 404
    metrics = get(server, "/metrics")[1]
    assert "\nneutracer_aggregator_store_healthy 0\n" in metrics
    assert "\nneutracer_aggregator_store_unsaved_incidents 1\n" in metrics

    (disk / "junk").unlink()
    assert server.put("firing", "after")
    assert store_check(server)[0] == 200
    # The one that had to wait is there, and before the later one.
    items = json.loads(get(server, "/api/v1/incidents?limit=2")[1])["items"]
    assert [item["id"] for item in items] == ["after", f"full-{refused}"]


def main():
    with tempfile.TemporaryDirectory() as directory:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", directory], capture_output=True)
        if mounted.returncode:
            print("skip: root: a file system cannot be mounted here")
            return 77
        try:
            with Server(directory) as server:
                check(server, pathlib.Path(directory))
                server.stop()
            # A store cannot be opened on a full disk: one clear line, and nothing half made.
            (pathlib.Path(directory) / "store.db").unlink()
            fill(pathlib.Path(directory) / "junk")
            try:
                Server(directory)
                raise AssertionError("a store was made on a full disk")
            except SystemExit:
                pass
        finally:
            subprocess.run(["umount", directory], check=True)
    print("a full disk is told, and nothing is lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
