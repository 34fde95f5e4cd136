#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The delivery promise: a sender that is killed again and again, and a receiver in trouble.

After all that, every incident has been taken once as firing and once as resolved, in this order; a
repeat has the same webhook-id and the same body; and a message that was answered with success is
repeated at most once per kill. Signatures are checked on every call. Then the same for every other kind of
receiver, all at once, against servers that behave as the services do.
"""
import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import random
import sys
import tempfile
import threading
import time

from alerts import write_receivers
from server import Server
from services import Services

ROUNDS = 12
KIND_ROUNDS = 4  # DingTalk and WeCom take 20 messages a minute
PER_ROUND = 4
KEY = b"a key for the tests of webhooks!"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


class Receiver(http.server.BaseHTTPRequestHandler):
    dice = random.Random(7)
    lock = threading.Lock()
    calls = []  # (webhook-id, body, answered with success)
    calm = False  # no more trouble
    wrong = []

    def check(self, identity, body):
        stamp = self.headers["webhook-timestamp"]
        text = f"{identity}.{stamp}.".encode() + body
        want = "v1," + base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
        if self.headers["webhook-signature"] != want:
            Receiver.wrong.append(f"{identity}: bad signature")
        if abs(time.time() - int(stamp)) > 60:
            Receiver.wrong.append(f"{identity}: timestamp {stamp}")
        if self.headers["Content-Type"] != "application/json":
            Receiver.wrong.append(f"{identity}: {self.headers['Content-Type']}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        identity = self.headers["webhook-id"]
        with Receiver.lock:
            self.check(identity, body)
            luck = 1 if Receiver.calm else Receiver.dice.random()
        time.sleep(0.02)
        taken = luck >= 0.35
        with Receiver.lock:
            Receiver.calls.append((identity, body, taken))
        if luck < 0.1:
            self.connection.close()  # it has the message, and the sender does not know
            return
        self.send_response(204 if taken else 503 if luck < 0.25 else 429)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class ReceiverServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a killed sender


def waits(server):
    """Messages in the outbox."""
    import urllib.request
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/metrics",
                                     headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("neutracer_aggregator_notifications_waiting "):
                return int(line.split()[1])
    raise SystemExit("there is no metric of waiting messages")


def drain(server):
    for _ in range(600):
        if not waits(server):
            return
        time.sleep(0.1)
    raise SystemExit("messages still wait after a minute")


def judge(incidents, kills):
    wrong = list(Receiver.wrong)
    bodies, taken, first = {}, {}, {}
    for number, (identity, body, success) in enumerate(Receiver.calls):
        if bodies.setdefault(identity, body) != body:
            wrong.append(f"{identity} was repeated with another body")
        first.setdefault(identity, number)
        taken.setdefault(identity, []).extend([number] if success else [])
    wanted = set()
    for incident in incidents:
        firing, resolved = f"msg_{incident}_firing_critical", f"msg_{incident}_resolved"
        wanted |= {firing, resolved}
        for identity, kind in ((firing, "incident.firing"), (resolved, "incident.resolved")):
            if not taken.get(identity):
                wrong.append(f"{identity} was lost")
            elif json.loads(bodies[identity])["type"] != kind:
                wrong.append(f"{identity} is no {kind}")
        if firing in first and resolved in first and not (
                taken[firing] and taken[firing][0] < first[resolved]):
            wrong.append(f"{resolved} came before its alarm was taken")
    wrong += [f"{identity} should not have been sent" for identity in set(bodies) - wanted]
    repeats = sum(max(0, len(numbers) - 1) for numbers in taken.values())
    if repeats > kills:
        wrong.append(f"{repeats} repeats of taken messages in {kills} kills")
    return wrong, repeats


def events_of(kind, body, incidents):
    """(incident, is its end) of each part of what a service accepted."""
    parts = body if kind == "alertmanager" else [body]
    for part in parts:
        text = json.dumps(part)
        is_end = {"pagerduty": lambda: part["event_action"] == "resolve", "opsgenie": lambda: "close" in part,
                  "alertmanager": lambda: part["endsAt"] <= time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime()),
                  }.get(kind, lambda: "RESOLVED" in text or "incident.resolved" in text)()
        for incident in incidents:
            if incident in text:
                yield incident, is_end


def judge_kind(kind, service, incidents, kills):
    wrong = list(service.faults)
    seen = {}
    for body in service.accepted:
        for incident, is_end in events_of(kind, body, incidents):
            seen.setdefault(incident, []).append(is_end)
    for incident in sorted(incidents):
        ends = seen.get(incident, [])
        if False not in ends or True not in ends:
            wrong.append(f"{incident}: a message was lost: {ends}")
        elif ends.index(True) < ends.index(False) or False in ends[ends.index(True):]:
            wrong.append(f"{incident}: its end came before its beginning: {ends}")
    repeats = sum(len(ends) - 2 for ends in seen.values())
    # Alertmanager is repeated by its protocol.
    if kind != "alertmanager" and repeats > kills:
        wrong.append(f"{repeats} repeats in {kills} kills")
    return [f"{kind}: {line}" for line in wrong], repeats


def all_kinds():
    services, dice = Services(), random.Random(13)
    incidents = set()
    with tempfile.TemporaryDirectory() as directory:
        path = write_receivers(pathlib.Path(directory), services)
        for turn in range(KIND_ROUNDS):
            services.each("troubles", turn % 2)
            with Server(directory, NT_RECEIVERS_FILE=path) as server:
                threading.Timer(dice.uniform(0.03, 0.3), server.process.kill).start()
                for incident in (f"00000000000000c{turn}", f"00000000000000d{turn}"):
                    if server.put("firing", incident):
                        incidents.add(incident)
                server.process.wait()
        services.each("troubles", 0)
        with Server(directory, NT_RECEIVERS_FILE=path) as server:
            for incident in sorted(incidents):
                if not server.put("resolved", incident):
                    raise SystemExit("the server ended")
            drain(server)
            server.stop()
    wrong, repeats = [], {}
    for kind, service in services.all.items():
        more, repeats[kind] = judge_kind(kind, service, incidents, KIND_ROUNDS)
        wrong += more
    print(f"{len(services.all)} kinds, {len(incidents)} incidents, {KIND_ROUNDS} kills: repeats {repeats}")
    return wrong


def main():
    receiver = ReceiverServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    hook = {"NT_WEBHOOK_URL": f"http://127.0.0.1:{receiver.server_address[1]}/hook",
            "NT_WEBHOOK_SECRET": SECRET}
    dice = random.Random(11)
    incidents = {"00000000000000f1", "00000000000000f2"}
    with tempfile.TemporaryDirectory() as directory:
        for turn in range(ROUNDS):
            with Server(directory, **hook) as server:
                threading.Timer(dice.uniform(0.03, 0.3), server.process.kill).start()
                for i in range(PER_ROUND):
                    incident = f"{turn:08x}{i:08x}"
                    if server.put("firing", incident):
                        incidents.add(incident)
                server.process.wait()
        Receiver.calm = True
        with Server(directory, **hook) as server:
            for incident in sorted(incidents):
                if not server.put("resolved", incident):
                    raise SystemExit("the server ended")
            drain(server)
            server.stop()
        calls = len(Receiver.calls)
        # One more start: nothing is sent again.
        with Server(directory, **hook) as server:
            drain(server)
            server.stop()
    wrong, repeats = judge(incidents, ROUNDS)
    if len(Receiver.calls) != calls:
        wrong.append("a restart sent something again")
    print(f"{len(incidents)} incidents, {ROUNDS} kills, {calls} calls, "
          f"{repeats} repeats of taken messages")
    wrong += all_kinds()
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
