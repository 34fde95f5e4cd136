#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of receiver against a server that behaves as the service does (services.py): fire, retry, refuse,
resolve, restart, names that are long and hostile, digests, and `neutracer alert`. Then the real aggregator, whose
incident is decided from windows that a feeder plays.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from server import Server
from services import Services

BIN = pathlib.Path(os.environ.get("NT_BIN", "build/release/bin"))
NEUTRACER = os.environ.get("NT_NEUTRACER", str(BIN / "neutracer"))
FEEDER = os.environ.get("NT_FEEDER", "build/release/test-kafka/feeder")
PATIENCE_S = 60


def write_receivers(directory, services, rate=6000):
    lines = ["incident-url: https://neutracer.example/i/", "receivers:"]
    for kind, service in services.all.items():
        (directory / f"{kind}.url").write_text(services.url(kind) + "\n")
        lines.append(f"- {{name: my-{kind}, kind: {kind}, url-file: {directory}/{kind}.url, rate: {rate}")
        if service.secret:
            (directory / f"{kind}.key").write_text(service.secret + "\n")
            lines[-1] += f", secret-file: {directory}/{kind}.key"
        lines[-1] += "}"
    path = directory / "receivers.yaml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def receivers(server):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/v1/receivers",
                                     headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {item["kind"]: item for item in json.load(answer)["items"]}


def wait_for(what, condition, detail=lambda: ""):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"not in {PATIENCE_S} s: {what}: {detail()}")
        time.sleep(0.05)


class Scene:
    def __init__(self, services, server):
        self.services, self.server = services, server

    def counts(self, result):
        return {kind: item["messages"][result] for kind, item in receivers(self.server).items()}

    def wait_counts(self, result, least):
        wait_for(f"{least} messages {result}", lambda: all(n >= least for n in self.counts(result).values()),
                 lambda: (self.counts(result), self.faults()))

    def faults(self):
        return [f"{kind}: {fault}" for kind, one in self.services.all.items() for fault in one.faults]

    def put(self, state, incident):
        if not self.server.put(state, incident):
            sys.exit("the server ended")

    def accepted(self):
        return {kind: len(one.accepted) for kind, one in self.services.all.items()}


def check_no_faults(scene):
    if scene.faults():
        sys.exit("refused:\n" + "\n".join(scene.faults()))


def check_order(services):
    """A resolution comes behind its alarm, and names it."""
    events = [(body["event_action"], body["dedup_key"]) for body in services.all["pagerduty"].accepted]
    if events.index(("trigger", "f1")) > events.index(("resolve", "f1")):
        sys.exit(f"PagerDuty: {events}")
    if [body["close"] for body in services.all["opsgenie"].accepted if "close" in body] != ["f1"]:
        sys.exit("Opsgenie: the alert is not closed by its alias")
    over = [alert for body in services.all["alertmanager"].accepted for alert in body
            if alert["labels"]["incident"] == "f1"]
    if over[0]["labels"] != over[-1]["labels"] or not over[0]["endsAt"] > over[-1]["endsAt"]:
        sys.exit(f"Alertmanager: {over}")


def fire_and_resolve(scene):
    scene.services.each("troubles", 1)
    scene.put("firing", "f1")
    scene.wait_counts("sent", 1)
    scene.wait_counts("retried", 1)
    scene.put("hostile", "f2")
    scene.wait_counts("sent", 2)
    scene.put("resolved", "f1")
    scene.wait_counts("sent", 3)
    check_no_faults(scene)
    check_order(scene.services)
    many = {kind: n for kind, n in scene.accepted().items() if n != 3}
    if many:
        sys.exit(f"not three messages: {many}")


def refuse(scene):
    scene.services.each("refuses", True)
    scene.put("firing", "f3")
    scene.wait_counts("failed", 1)
    scene.services.each("refuses", False)
    before = scene.accepted()
    scene.put("resolved", "f3")
    scene.put("firing", "f4")
    scene.wait_counts("sent", 4)
    more = {kind: n - before[kind] for kind, n in scene.accepted().items() if n - before[kind] != 1}
    if more:
        sys.exit(f"the end of what was refused was sent: {more}")


def test_receivers(scene, directory):
    """`neutracer alert`, and alert test."""
    where = ["--server", f"http://127.0.0.1:{scene.server.port}", "--token-file", f"{directory}/token"]

    def run(*words):
        return subprocess.run([NEUTRACER, "alert", *words, *where], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})

    listed = run()
    if listed.returncode or "my-pagerduty" not in listed.stdout:
        sys.exit(f"neutracer alert: {listed}")
    answers = {"slack": "ok", "feishu": '"code":0', "dingtalk": '"errcode":0', "pagerduty": "Event processed",
               "opsgenie": "Request will be processed", "teams": "HTTP 202"}
    for kind, one in scene.services.all.items():
        done = run("test", f"my-{kind}")
        if done.returncode or "taken" not in done.stdout or answers.get(kind, "") not in done.stdout:
            sys.exit(f"neutracer alert test my-{kind}: {done}")
        if "test" not in json.dumps(one.accepted[-1]).lower():
            sys.exit(f"{kind}: the test is not marked: {one.accepted[-1]}")
    scene.services.all["wecom"].refuses = True
    done = run("test", "my-wecom")
    if done.returncode != 1 or "not taken" not in done.stdout or "code 93000" not in done.stdout:
        sys.exit(f"neutracer alert test of one that refuses: {done}")
    if run("test", "nobody").returncode != 7 and "no receiver" not in run("test", "nobody").stderr:
        sys.exit(f"neutracer alert test of nobody: {run('test', 'nobody')}")
    scene.services.all["wecom"].refuses = False
    check_no_faults(scene)


def restart_while_away(services, directory, path):
    """What waits survives, and is sent once."""
    services.each("is_away", True)
    with Server(directory, NT_RECEIVERS_FILE=path) as server:
        scene = Scene(services, server)
        scene.put("firing", "f5")
        scene.wait_counts("retried", 1)
        server.kill()
    before = scene.accepted()
    services.each("is_away", False)
    with Server(directory, NT_RECEIVERS_FILE=path) as server:
        scene = Scene(services, server)
        scene.wait_counts("sent", 1)
        server.stop()
    more = {kind: n - before[kind] for kind, n in scene.accepted().items()
            if n - before[kind] != 1 and kind != "alertmanager"}
    if more:
        sys.exit(f"after a restart: {more}")
    check_no_faults(scene)


def storm(services):
    """Chats get few messages, which count all; the others get each incident."""
    with tempfile.TemporaryDirectory() as fresh:
        path = write_receivers(pathlib.Path(fresh), services, rate=8)
        with Server(fresh, NT_RECEIVERS_FILE=path) as server:
            scene = Scene(services, server)
            before = scene.accepted()
            for i in range(30):
                scene.put("firing", f"e{i:02}")
            wait_for("chats have all",
                     lambda: all(receivers(server)[kind]["messages"]["sent"] == 30
                                 for kind in ("slack", "feishu", "dingtalk", "wecom", "teams")))
            counts = receivers(server)
            server.kill()
    for kind in ("slack", "feishu", "dingtalk", "wecom", "teams"):
        sent = len(services.all[kind].accepted) - before[kind]
        if sent > 12 or counts[kind]["messages"]["digested"] < 20:
            sys.exit(f"{kind}: {sent} messages, {counts[kind]['messages']}")
        if "DIGEST" not in json.dumps(services.all[kind].accepted[-8:]):
            sys.exit(f"{kind}: no digest")
    check_no_faults(scene)


def live(directory):
    """One incident of the real aggregator: each kind gets its beginning and its end."""
    services = Services()
    work = directory / "live"
    for name in ("spool", "feed"):
        (work / name).mkdir(parents=True)
    (work / "feed/faults").write_text("0")
    path = write_receivers(work, services)
    with open(work / "log", "wb") as log:
        processes = [subprocess.Popen([FEEDER, f"spool:{work}/spool", "1", work / "feed"], stderr=log),
                     subprocess.Popen([BIN / "neutracer-aggregator", "--bus", f"spool:{work}/spool", "--user", "",
                                       "--listen", "127.0.0.1:0", "--token-file", work / "token", "--store",
                                       work / "store.db", "--receivers-file", path, "--resolve-after", "3s"],
                                      stderr=log)]
        try:
            wait_for("the aggregator", lambda: re.search(r"answering on port", (work / "log").read_text()))
            time.sleep(12)  # what is healthy
            if any(one.accepted for one in services.all.values()):
                sys.exit("a message of a healthy job")
            (work / "feed/faults").write_text("80")
            wait_for("the alarm", lambda: all(one.accepted for one in services.all.values()))
            (work / "feed/faults").write_text("0")
            wait_for("its end", lambda: all("resolved" in json.dumps(one.accepted[-1]).lower() or kind == "alertmanager"
                                            for kind, one in services.all.items() if kind not in ("pagerduty", "opsgenie")))
            wait_for("the end at pagers", lambda: services.all["pagerduty"].accepted[-1]["event_action"] == "resolve"
                     and "close" in services.all["opsgenie"].accepted[-1])
        finally:
            for process in processes:
                process.terminate()
                process.wait(timeout=60)
    if processes[1].returncode:
        sys.exit(f"the aggregator ended with {processes[1].returncode}")
    faults = [f"{kind}: {fault}" for kind, one in services.all.items() for fault in one.faults]
    if faults:
        sys.exit("refused:\n" + "\n".join(faults))
    text = services.all["slack"].accepted[0]["text"]
    if not re.fullmatch(r"FIRING \(critical\) .*: [a-z]+, rank 5 on .*", text):
        sys.exit(f"Slack: {text}")
    print(f"the real aggregator: {text}")


def main():
    services = Services()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        path = write_receivers(directory, services)
        with Server(directory, NT_RECEIVERS_FILE=path) as server:
            scene = Scene(services, server)
            fire_and_resolve(scene)
            refuse(scene)
            test_receivers(scene, directory)
            server.stop()
        restart_while_away(services, directory, path)
        storm(services)
        live(directory)
    print(f"{len(services.all)} kinds: {sum(one.requests for one in services.all.values())} requests, "
          f"{sum(len(one.accepted) for one in services.all.values())} accepted")


if __name__ == "__main__":
    main()
