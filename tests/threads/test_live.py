#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""All threads of an aggregator at once: jobs on a spool, an incident that comes and goes, a webhook
that is slow and at first away, a Kubernetes API server that refuses every third request, and clients
of the REST interface that ask for everything without a pause.

Meant for programs that are built with the thread sanitizer (`make check-thread`), whose word is
final; NT_BIN and NT_FEEDER say where they are.
"""
import http.client
import http.server
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(os.environ.get("NT_BIN", "build/tsan/bin"))
FEEDER = os.environ.get("NT_FEEDER", "build/tsan/test-kafka/feeder")
JOBS = 4
CLIENTS = 3
PATIENCE_S = 90
PATHS = ["/healthz", "/readyz", "/metrics", "/openapi.yaml", "/api/v1/jobs", "/api/v1/jobs?limit=1",
         "/api/v1/slow-ranks", "/api/v1/incidents", "/api/v1/incidents?limit=1", "/api/v1/nodes",
         "/api/v1/none"]


class Receiver(http.server.BaseHTTPRequestHandler):
    """The webhook, and the API server: a node that is there, pods that are not."""
    protocol_version = "HTTP/1.1"
    requests = itertools.count(1)
    hooks, events, conditions = [], [], []

    def reply(self, status, document=None):
        body = json.dumps(document or {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def taken(self, into):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number = next(Receiver.requests)
        time.sleep(0.1)
        if number < 3 or number % 3 == 0:
            self.reply(503)
            return
        into.append(json.loads(body))
        self.reply(201)

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        if "/nodes/" not in self.path:
            self.reply(404)
            return
        self.reply(200, {"metadata": {"name": name, "uid": "1", "resourceVersion": "1"}})

    def do_POST(self):
        self.taken(Receiver.hooks if self.path == "/hook" else Receiver.events)

    def do_PATCH(self):
        self.taken(Receiver.conditions)

    def log_message(self, *_):
        pass


class Client(threading.Thread):
    """Asks for everything, over and over, on one connection and then on another."""

    def __init__(self, port, token):
        super().__init__(daemon=True)
        self.port, self.token = port, token
        self.ends = threading.Event()
        self.answers = 0
        self.error = None

    def ask(self, connection, method, path):
        connection.request(method, path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        self.answers += 1
        return json.loads(body)["items"] if answer.status == 200 and path.startswith("/api/") else []

    def turn(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for path in PATHS:
            for item in self.ask(connection, "GET", path):
                kind = path[len("/api/v1/"):].partition("?")[0]
                if kind == "jobs":
                    self.ask(connection, "GET", f"/api/v1/jobs/{item['id']}/ranks")
                    self.ask(connection, "POST", "/api/v1/jobs/0123456789abcdef/rebaseline")
        connection.close()

    def run(self):
        try:
            while not self.ends.is_set():
                self.turn()
        except Exception as error:  # pylint: disable=broad-except # whatever it is, it is told
            self.error = error


def wait_for(what, condition, process):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if process.poll() is not None:
            sys.exit(f"the aggregator ended with {process.returncode} while we waited for {what}")
        if time.monotonic() > until:
            sys.exit(f"{what}: not in {PATIENCE_S} s")
        time.sleep(0.1)


def kinds(messages):
    return [message["type"] for message in messages]


def start_aggregator(work, server, log):
    url = work / "url"
    (work / "spool").mkdir(exist_ok=True)
    url.write_text(f"http://127.0.0.1:{server.server_address[1]}/hook\n")
    return subprocess.Popen(
        [BIN / "neutracer-aggregator", "--bus", f"spool:{work / 'spool'}", "--listen", "127.0.0.1:0",
         "--token-file", work / "token", "--store", work / "store.db", "--user", "",
         "--webhook-url-file", url, "--kube-events", "--kube-node-condition",
         "--kube-api", f"http://127.0.0.1:{server.server_address[1]}", "--kube-token-file", "",
         "--kube-ca-file", "", "--resolve-after", "3s", "--save-every", "1s"], stderr=log)


def play(work, log_path, aggregator, faults):
    port = 0

    def answers():
        nonlocal port
        found = re.search(r"answering on port (\d+)", log_path.read_text())
        port = int(found.group(1)) if found else 0
        return port

    wait_for("its port", answers, aggregator)
    token = (work / "token").read_text().split()[0]
    clients = [Client(port, token) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    time.sleep(12)  # what is healthy
    faults.write_text("80")
    wait_for("the alarm", lambda: "incident.firing" in kinds(Receiver.hooks)
             and Receiver.events and Receiver.conditions, aggregator)
    faults.write_text("0")
    wait_for("its end", lambda: "incident.resolved" in kinds(Receiver.hooks), aggregator)
    aggregator.send_signal(signal.SIGTERM)  # while all are at it
    status = aggregator.wait(timeout=60)
    for client in clients:
        client.ends.set()
        client.join()
    if status:
        sys.exit(f"the aggregator ended with {status}")
    return sum(client.answers for client in clients)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        faults, log_path = work / "faults", work / "log"
        faults.write_text("0")
        with open(log_path, "wb") as log:
            feeder = subprocess.Popen([FEEDER, f"spool:{work / 'spool'}", str(JOBS), work], stderr=log)
            aggregator = start_aggregator(work, server, log)
            try:
                answers = play(work, log_path, aggregator, faults)
            finally:
                for process in (aggregator, feeder):
                    if process.poll() is None:
                        process.terminate()
                        process.wait(timeout=60)
                print(log_path.read_text())
        if feeder.returncode or "ThreadSanitizer" in log_path.read_text():
            sys.exit(f"the feeder ended with {feeder.returncode}; see above")
    print(f"{answers} answers, {len(Receiver.hooks)} webhooks, {len(Receiver.events)} Events, "
          f"{len(Receiver.conditions)} conditions")


if __name__ == "__main__":
    main()
