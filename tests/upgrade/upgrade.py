#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one version wrote, another reads.

  upgrade.py make DIR      plays two jobs to an aggregator, and keeps in DIR what it and the agents leave:
                           state.tar.gz (store, token, spool, disk queue), the config files with every
                           key that has a default, and expected.json: what REST answered
  upgrade.py check DIR     starts an aggregator on a copy of that, at the time when it was made

The programs are those of NT_BIN, and the feeder, which plays agents, is NT_FEEDER. With NT_OLDER=1 the
programs that check are older than those that made: a store that they refuse must be whole afterwards.
"""
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

BIN = pathlib.Path(os.environ.get("NT_BIN", "build/release/bin")).resolve()
FEEDER = pathlib.Path(os.environ.get("NT_FEEDER", BIN.parent / "test-kafka/feeder")).resolve()
SHIFT = pathlib.Path(os.environ.get("NT_CLOCK_SHIFT_LIBRARY", "build/upgrade/libclock_shift.so")).resolve()
JOBS = 2
LATER_S = 120  # after the data were made: what waits for its next attempt is due
started = []  # processes, of which none stays
PATIENCE_S = 90
EXIT_CONFIG, EXIT_STORE = 3, 6
KEPT = ["store.db", "token", "spool", "shelter"]
SAME = ["id", "job", "class", "cause", "since", "attempt"]  # of an incident, whatever happens to it


def fail(why):
    sys.exit(f"upgrade.py: {why}")


def wait_for(what, condition, *processes, about=lambda: ""):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        for process in processes:
            if process.poll() is not None:
                fail(f"a program ended with {process.returncode} before {what}")
        if time.monotonic() > until:
            fail(f"waited in vain for {what}: {about()}")
        time.sleep(0.1)


def start(command, **options):
    started.append(subprocess.Popen(command, **options))
    return started[-1]


class Receiver(http.server.BaseHTTPRequestHandler):
    """A webhook; away: it answers 503."""
    away, taken = True, {}

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not Receiver.away:
            Receiver.taken[self.headers["webhook-id"]] = json.loads(body)
        self.send_response(503 if Receiver.away else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Aggregator:
    def __init__(self, work, hook, shift_s=0):
        (work / "url").write_text(f"http://127.0.0.1:{hook}/hook\n")
        self.work, self.log = work, work / "log"
        environment = {**os.environ, "LD_PRELOAD": str(SHIFT), "NT_CLOCK_SHIFT": str(shift_s)} if shift_s > 0 else None
        with open(self.log, "wb") as log:
            self.process = start(
                [BIN / "neutracer-aggregator", "--config", work / "aggregator.yaml", "--bus", f"spool:{work / 'spool'}",
                 "--listen", "127.0.0.1:0", "--store", work / "store.db", "--token-file", work / "token", "--user", "",
                 "--webhook-url-file", work / "url", "--save-every", "1s", "--resolve-after", "5s"],
                stderr=log, env=environment)

    def answers(self):
        wait_for("an answer of REST", lambda: re.search(r"answering on port \d+", self.log.read_text()), self.process)
        self.port = int(re.search(r"answering on port (\d+)", self.log.read_text())[1])
        self.token = (self.work / "token").read_text().split()[0]

    def get(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def incidents(self):
        return json.loads(self.get("/api/v1/incidents?limit=1000"))["items"]

    def metric(self, name):
        """The sum over its labels; 0 if there is none."""
        return sum(float(line.split()[-1]) for line in self.get("/metrics").splitlines()
                   if re.match(rf"neutracer_aggregator_{name}[ {{]", line))

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def start_receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def defaults_of(name):
    """A config file with every key that has a default."""
    text = subprocess.run([BIN / name, "--print-options"], check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return "".join(f'{key}: "{default}"\n' for _, _, key, _, default, _ in rows if key != "-" and default != "-")


def waiting_of(store):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        return sorted(list(row) for row in db.execute(
            "SELECT incident, event FROM message WHERE state IN ('waiting', 'parked')"))


def pack(work, out):
    """The same files give the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for path in sorted(p for name in KEPT for p in [work / name, *(work / name).rglob("*")]):
            info = tar.gettarinfo(path, str(path.relative_to(work)))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            with open(path, "rb") if info.isfile() else io.BytesIO() as data:
                tar.addfile(info, data if info.isfile() else None)
    with open(out, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(raw.getvalue())


# ---- make ----------------------------------------------------------------------------------------


def feed(url, jobs, work):
    return start([FEEDER, url, str(jobs), work], stderr=subprocess.DEVNULL)


def play(work, aggregator, faults):
    """Two incidents: that of one job ends, that of the other stays."""
    def states():
        return sorted((incident["job"], incident["state"]) for incident in aggregator.incidents())

    aggregator.answers()
    time.sleep(12)  # what is healthy
    faults.write_text("80")
    wait_for("two incidents", lambda: [s for _, s in states()] == ["firing"] * JOBS, aggregator.process, about=states)
    faults.write_text("80 0")
    wait_for("one that is over", lambda: sorted(s for _, s in states()) == ["firing", "resolved"], aggregator.process)


def make(out):
    out.mkdir(parents=True, exist_ok=True)
    hook = start_receiver()
    for name in ("agent", "aggregator"):
        (out / f"{name}.yaml").write_text(defaults_of(f"neutracer-{name}"))
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "aggregator.yaml").write_text((out / "aggregator.yaml").read_text())
        (work / "spool").mkdir()
        faults = work / "faults"
        faults.write_text("0")
        feeder, aggregator = feed(f"spool:{work / 'spool'}", JOBS, work), Aggregator(work, hook)
        play(work, aggregator, faults)
        expected = {"incidents": aggregator.incidents(), "messages": aggregator.metric("messages_total")}
        if aggregator.end():
            fail("the aggregator does not end in good order")
        time.sleep(3)  # messages that it has not read
        feeder.terminate()
        feeder.wait()
        # Brokers that are not there: messages go into the disk queue.
        feeder = feed("kafka://127.0.0.1:9", 1, work)
        time.sleep(6)
        feeder.terminate()
        feeder.wait()
        counts = dict(line.split() for line in (work / "metrics").read_text().splitlines())
        expected["queued"] = int(counts["stored"])
        expected["waiting"] = waiting_of(work / "store.db")
        expected["made"] = int(time.time())
        expected["version"] = subprocess.run([BIN / "neutracer", "--version"], check=True, capture_output=True, text=True).stdout.strip()
        if not expected["waiting"] or not expected["queued"]:
            fail(f"nothing waits: {expected}")
        pack(work, out / "state.tar.gz")
        (out / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    print(f"{out}: {len(expected['incidents'])} incidents, {len(expected['waiting'])} messages wait, {expected['queued']} queued")


# ---- check ---------------------------------------------------------------------------------------


OLDER = bool(os.environ.get("NT_OLDER"))  # keys that it does not know are refused: it gets none


def unpack(kept, work):
    with tarfile.open(kept / "state.tar.gz") as tar:
        tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
    (work / "token").chmod(0o600)
    (work / "aggregator.yaml").write_text("" if OLDER else (kept / "aggregator.yaml").read_text())


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refuses_what_is_newer(kept, work, hook):
    """A store of a later schema: a clear line, the named status, and not a byte changed."""
    unpack(kept, work)
    with sqlite3.connect(work / "store.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = digest(work / "store.db")
    aggregator = Aggregator(work, hook)
    status = aggregator.process.wait(timeout=60)
    log = aggregator.log.read_text()
    if status != EXIT_STORE or "newer version" not in log or str(work / "store.db") not in log:
        fail(f"a store of a later schema ends the aggregator with {status}: {log}")
    if digest(work / "store.db") != before:
        fail("a store of a later schema was changed")


def accepts_the_settings(kept):
    """Every key with its default; the environment, which is read afterwards, has a mistake."""
    for name in ("agent", "aggregator"):
        run = subprocess.run([BIN / f"neutracer-{name}", "--config", kept / f"{name}.yaml"],
                             env={**os.environ, "NT_BUS": "none"}, capture_output=True, text=True, timeout=60)
        if run.returncode != EXIT_CONFIG or "NT_BUS" not in run.stderr:
            fail(f"neutracer-{name} does not accept {kept / name}.yaml: {run.stderr}")


def loses_nothing(kept, work, hook, expected):
    """Incidents, messages that wait, and what was not read yet."""
    unpack(kept, work)
    before = digest(work / "store.db")
    Receiver.away = False
    aggregator = Aggregator(work, hook, int(time.time()) - expected["made"] - LATER_S)
    if OLDER and wait_refused(aggregator):
        if digest(work / "store.db") != before:
            fail("an older version refused the store, and changed it")
        print("the store is of a later schema: refused, and left alone")
        return
    aggregator.answers()
    wait_for("the messages that it had not read", lambda: aggregator.metric("messages_total") > 0, aggregator.process)
    now = {incident["id"]: incident for incident in aggregator.incidents()}
    for old in expected["incidents"]:
        new = now.get(old["id"]) or fail(f"incident {old['id']} is lost")
        differ = [key for key in SAME if new.get(key) != old.get(key)]
        if [c["rank"] for c in new["culprits"]] != [c["rank"] for c in old["culprits"]]:
            differ.append("culprits")
        if differ or (old["state"], new["state"]) == ("resolved", "firing"):
            fail(f"incident {old['id']} differs in {differ or 'its state'}: {old} became {new}")
    wait_for("the messages that waited", lambda: all(
        any(data["data"]["id"] == identity and data["type"] == f"incident.{event}" for data in Receiver.taken.values())
        for identity, event in expected["waiting"]), aggregator.process)
    for name in ("records_refused_total", "dlq_total", "bus_corrupt_total", "bus_missed_total"):
        if aggregator.metric(name):
            fail(f"{name} is {aggregator.metric(name)}: {aggregator.log.read_text()}")
    if aggregator.end():
        fail("the aggregator does not end in good order")
    bad = [line for line in aggregator.log.read_text().splitlines() if re.search("discard|damaged|afresh|level=error", line)]
    if bad:
        fail("\n".join(bad))


def wait_refused(aggregator):
    try:
        status = aggregator.process.wait(timeout=3)
    except subprocess.TimeoutExpired:
        return False
    if status != EXIT_STORE or "newer version" not in aggregator.log.read_text():
        fail(f"an older version ends with {status}: {aggregator.log.read_text()}")
    return True


def names_of(incidents):
    return sorted((one["class"], one["culprits"][0]["rank"], one["culprits"][0]["node"]) for one in incidents)


def analyzes(kept, work, expected):
    """The same recording without a store: the same verdicts."""
    unpack(kept, work)
    run = subprocess.run([BIN / "neutracer", "analyze", "--json", work / "spool"], capture_output=True, text=True, timeout=120)
    if run.returncode:
        fail(f"neutracer analyze: status {run.returncode}: {run.stderr}")
    report = json.loads(run.stdout)
    if names_of(report["incidents"]) != names_of(expected["incidents"]) or report["damage"] or report["missing_messages"]:
        fail(f"neutracer analyze: {names_of(report['incidents'])}, damage {report['damage']}, want {names_of(expected['incidents'])}")


def drains(kept, work, expected):
    """A disk queue, by an agent of this version, into a spool."""
    unpack(kept, work)
    spool = work / "drained"
    spool.mkdir()
    feeder = feed(f"spool:{spool}", 1, work)

    def counts():
        path = work / "metrics"
        return dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}

    wait_for("the disk queue", lambda: int(counts().get("drained", 0)) >= expected["queued"], feeder)
    last = counts()
    feeder.terminate()
    feeder.wait()
    if int(last["found"]) != expected["queued"] or int(last["lost"]):
        fail(f"the disk queue: {last}, want {expected['queued']} found and none lost")


def check(kept):
    expected = json.loads((kept / "expected.json").read_text())
    hook = start_receiver()
    steps = [lambda work: refuses_what_is_newer(kept, work, hook),
             lambda work: loses_nothing(kept, work, hook, expected),
             lambda work: analyzes(kept, work, expected),
             lambda work: drains(kept, work, expected)]
    if not OLDER:
        accepts_the_settings(kept)
    for step in steps:
        with tempfile.TemporaryDirectory() as directory:
            step(pathlib.Path(directory))
    print(f"{kept}: {expected['version']} is read: {len(expected['incidents'])} incidents, "
          f"{len(expected['waiting'])} messages sent, {expected['queued']} drained")


if __name__ == "__main__":
    try:
        {"make": make, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    finally:
        for one in started:
            if one.poll() is None:
                one.kill()
                one.wait()
