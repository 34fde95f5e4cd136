#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stream of live events over the real interface: what arrives, in which form, and how a client resumes."""
import http.client
import json
import re
import sys
import tempfile
import time
import urllib.request

from server import Server

JOB = "00000000000000a1"


class Stream:
    """An open stream; iterating gives (id, event, data)."""

    def __init__(self, server, query="", last=None, timeout=20):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {server.token}", **({"Last-Event-ID": last} if last else {})}
        self.connection.request("GET", f"/api/v1/events{query}", headers=headers)
        self.answer = self.connection.getresponse()

    def next(self):
        fields = {}
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                return fields["id"], fields["event"], json.loads(fields["data"])
            else:
                fields = {}
        sys.exit("the stream ended")

    def until(self, event):
        while True:
            found = self.next()
            if found[1] == event:
                return found

    def close(self):
        self.connection.close()


def expect(condition, what):
    if not condition:
        sys.exit(f"events: {what}")


def put(server, state, incident):
    expect(server.put(state, incident), "the server ended")


def live(server):
    stream = Stream(server)
    expect(stream.answer.status == 200 and stream.answer.headers["Content-Type"] == "text/event-stream",
           stream.answer.headers)
    first = stream.next()
    expect(first[1] == "ping" and re.fullmatch(r"[0-9a-f]{16}-[0-9]+", first[0]), first)
    put(server, "firing", "e1")
    opened = stream.until("incident")
    expect((opened[2]["id"], opened[2]["change"], opened[2]["state"]) == ("e1", "opened", "firing"), opened)
    expect(opened[2]["job_id"] == JOB and opened[2]["job"] == "llm-70b", opened)
    put(server, "resolved", "e1")
    resolved = stream.until("incident")
    expect((resolved[2]["change"], resolved[2]["state"]) == ("resolved", "resolved"), resolved)
    stream.close()
    return opened[0], resolved


def resume(server, before, resolved):
    for query, last in ((f"?after={before}", None), ("", before), ("?after=0123456789abcdef-1", before)):
        stream = Stream(server, query, last)
        expect(stream.next() == resolved, f"'{query}' does not resume")
        stream.close()
    stream = Stream(server, "?after=0123456789abcdef-1")
    expect(stream.next()[1] == "reset", "an id of another run gives no reset")
    stream.close()
    expect(Stream(server, "?after=x").answer.status == 400, "'after' is not checked")


def filters(server):
    others, ours = Stream(server, "?job=resnet", timeout=1), Stream(server, f"?job={JOB}")
    others.until("ping")
    ours.until("ping")
    put(server, "hostile", "e2")
    put(server, "firing", "e3")
    got = ours.until("incident")[2]
    expect(got["id"] in ("e2", "e3") and got["job_id"] == JOB, f"by the id of its job: {got}")
    try:
        expect(others.next()[1] == "ping", "an event of another job")
    except TimeoutError:
        pass
    others.close()
    ours.close()


def open_now(server):
    with urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{server.port}/metrics", headers={"Authorization": f"Bearer {server.token}"}),
            timeout=20) as answer:
        return int(re.search(r"^neutracer_aggregator_http_open_streams (\d+)$", answer.read().decode(), re.M)[1])


def limits(server):
    until = time.monotonic() + 20
    while open_now(server):
        expect(time.monotonic() < until, "streams of clients that have gone stay open")
        time.sleep(0.1)
    streams = [Stream(server) for _ in range(32)]
    expect(all(stream.answer.status == 200 for stream in streams), "fewer than 32 streams")
    last = Stream(server)
    expect(last.answer.status == 503 and last.answer.headers["Retry-After"], "33 streams")
    expect(json.load(last.answer)["code"] == "too_many_streams", "the code")
    for stream in streams:
        stream.close()


def main():
    with tempfile.TemporaryDirectory() as directory:
        with Server(directory) as server:
            before, resolved = live(server)
            resume(server, before, resolved)
            filters(server)
            limits(server)
            server.stop()
        with Server(directory) as server:
            stream = Stream(server, last=before)
            expect(stream.next()[1] == "reset", "a restart gives no reset")
            stream.close()
            server.stop()
    print("events: live, resumed, filtered, limited")


if __name__ == "__main__":
    main()
