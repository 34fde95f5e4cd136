#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every list of the contract: its pages together are the whole list, a cursor that is none is refused, and a page
that the client has is 304.
"""
import http.client
import json
import pathlib
import re
import sys
import tempfile
import urllib.parse

from server import Server

CONTRACT = "docs/api/openapi.yaml"
IDS = {"/api/v1/jobs/{id}": "00000000000000a1", "/api/v1/nodes/{id}": "gpu-01"}


def lists():
    """The paths that take a cursor."""
    path = None
    for line in pathlib.Path(CONTRACT).read_text().splitlines():
        if line == "components:":
            return
        if line.startswith("  /"):
            path = line.strip(" :")
        elif path and re.search(r"parameters/\w*Cursor'$", line):
            for prefix, name in IDS.items():
                if path.startswith(prefix):
                    path = path.replace("{id}", name)
            yield path


class Client:
    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        self.token = server.token

    def get(self, path, **headers):
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}", **headers})
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, answer.headers, json.loads(text) if text else None


def expect(condition, what):
    if not condition:
        sys.exit(f"pages: {what}")


def walk(client, path, limit):
    items, cursor, pages = [], "", 0
    while True:
        status, _, page = client.get(f"{path}?limit={limit}{cursor}")
        expect(status == 200 and len(page["items"]) <= limit, f"{path}: {status}, {page}")
        items += page["items"]
        pages += 1
        if not page["next"]:
            return items, pages
        expect(page["items"], f"{path}: an empty page that is not the last")
        cursor = f"&cursor={urllib.parse.quote(page['next'])}"


def check(client, path):
    whole, _ = walk(client, path, 1000)
    for limit in (1, 3):
        items, pages = walk(client, path, limit)
        expect(items == whole, f"{path}: its pages of {limit} are not the list")
        expect(pages >= len(whole) / limit, f"{path}: {pages} pages")
    for cursor in ("x", "%00", "i-1", "9" * 300, "i99999999999999999999"):
        expect(client.get(f"{path}?cursor={cursor}")[0] == 400, f"{path}: takes the cursor {cursor}")
    _, headers, _ = client.get(path)
    expect(headers["ETag"], f"{path}: no ETag")
    status, _, body = client.get(path, **{"If-None-Match": headers["ETag"]})
    expect(status == 304 and body is None, f"{path}: {status} for a page that is there")
    expect(client.get(path, **{"If-None-Match": '"other"'})[0] == 200, f"{path}: no 200 for another tag")
    return len(whole)


def main():
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        client = Client(server)
        counts = {path: check(client, path) for path in lists()}
        expect(len(counts) >= 7 and max(counts.values()) > 200, counts)
        tag = client.get("/api/v1/incidents?limit=3")[1]["ETag"]
        server.put("firing", "e9")
        expect(client.get("/api/v1/incidents?limit=3", **{"If-None-Match": tag})[0] == 200, "a changed list is 304")
        server.stop()
    print("pages: " + ", ".join(f"{path}: {count}" for path, count in counts.items()))


if __name__ == "__main__":
    main()
