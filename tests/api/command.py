#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`neutracer` against the real REST interface: answers, tables, terminals, failures in words."""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import urllib.request

from server import Server

NEUTRACER = os.environ.get("NT_NEUTRACER", "build/release/bin/neutracer")


def environment(**more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("NT_") and name not in ("NO_COLOR", "COLUMNS")}
    return {**clean, "LC_ALL": "C.UTF-8", **more}


def run(*words, **more):
    return subprocess.run([NEUTRACER, *words], capture_output=True, text=True, timeout=60,
                          env=environment(**more))


def run_on_terminal(columns, *words, **more):
    """What a terminal so wide would show."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([NEUTRACER, *words], stdout=theirs, stderr=theirs,
                               env=environment(TERM="xterm", **more))
    os.close(theirs)
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(ours)
    process.wait(timeout=60)
    return output.decode()


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class OverRest(unittest.TestCase):
    """Tests of the command over one server; `where` are the options that name it."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.server = Server(cls.directory.name)
        cls.where = ["--server", f"http://127.0.0.1:{cls.server.port}",
                     "--token-file", f"{cls.directory.name}/token"]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.directory.cleanup()


class Command(OverRest):
    def rest(self, path):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.server.port}{path}",
            headers={"Authorization": f"Bearer {self.server.token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def ask(self, *words, status=0, **more):
        done = run(*words, *self.where, **more)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return done.stdout

    # ---- answers ---------------------------------------------------------------------------------

    def test_json_is_what_rest_answers(self):
        for words, path in ((["slow-ranks"], "/api/v1/slow-ranks"),
                            (["jobs"], "/api/v1/jobs"),
                            (["jobs", "00000000000000a1"], "/api/v1/jobs/00000000000000a1/ranks"),
                            (["nodes"], "/api/v1/nodes"),
                            (["nodes", "gpu-01"], "/api/v1/nodes/gpu-01/scores"),
                            (["incidents", "00000000000000f1"],
                             "/api/v1/incidents/00000000000000f1")):
            self.assertEqual(json.loads(self.ask(*words, "--json")), self.rest(path))

    def test_lists_go_over_all_pages(self):
        items = json.loads(self.ask("incidents", "--json", "--limit", "1000"))["items"]
        self.assertEqual(len(items), 252)
        self.assertEqual(len({item["id"] for item in items}), 252)
        few = json.loads(self.ask("incidents", "--json", "--limit", "7"))["items"]
        self.assertEqual(few, items[:7])

    def test_what_people_did_with_an_incident_is_shown(self):
        where = "/api/v1/incidents/00000000000010f8"
        for act, body in (("acknowledge", {"by": "anna"}), ("annotate", {"text": "the fan is replaced", "by": "bo"}),
                          ("silence", {"for_seconds": 3600})):
            request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{where}/{act}",
                                             headers={"Authorization": f"Bearer {self.server.token}"},
                                             data=json.dumps(body).encode(), method="POST")
            request.add_header("Content-Type", "application/json")
            urllib.request.urlopen(request, timeout=10).close()
        shown = self.ask("incidents", "00000000000010f8")
        for text in (r"acknowledged by anna at 2", r"silenced at 2.*, until 2", r"bo: the fan is replaced"):
            self.assertRegex(shown, text)

    def test_the_culprit_stands_in_the_first_line_of_its_kind(self):
        lines = self.ask("slow-ranks").splitlines()
        self.assertRegex(lines[0], r"^WHO +NODE +POD +JOB +CLASS")
        self.assertRegex(lines[1], r"^node gpu-02 .* ×2\.00 .*00000000000000f2$")
        self.assertRegex(lines[2], r"^rank 5 +gpu-07 +llm-70b-5 +llm-70b +compute .* ×1\.31 ")

    def test_nodes_that_leave_something_out_are_named_below_the_jobs(self):
        self.assertEqual(self.ask("jobs").splitlines()[-1],
                         "gpu-02: 412 processes left out, 400 of them of user 65534 (cap 1024)")

    def test_nodes_show_their_score(self):
        lines = self.ask("nodes").splitlines()
        self.assertRegex(lines[0], r"^NODE +RANKS +AGENT +STATE +SCORE +THRESHOLD +METRICS")
        self.assertRegex(lines[1], r"^gpu-01 +2 +observed +learning +- +- +new since 20")
        self.assertRegex(lines[2], r"^gpu-02 +2 +unobserved +- +- +- +-")
        self.assertRegex(self.ask("nodes", "gpu-01"), r"^learning: score 0\.0, threshold \d+")

    def test_a_past_time_is_asked_of_the_stored_incidents(self):
        self.assertEqual(self.ask("slow-ranks", "--at", "2020-01-01T00:00:00Z"),
                         "No slow ranks at 2020-01-01T00:00:00Z.\n")
        refused = run("slow-ranks", "--at", "yesterday", *self.where)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("'yesterday' is not a time such as", refused.stderr)

    def test_the_audit_log_shows_who_changed_what(self):
        self.ask("incidents", "annotate", "00000000000010f8", "for the audit")
        lines = self.ask("audit").splitlines()
        self.assertRegex(lines[0], r"^TIME +TOKEN +ADDRESS +METHOD +PATH +STATUS")
        self.assertRegex(lines[1], r"^20.* line 1 +127\.0\.0\.1 +POST +/api/v1/incidents/00000000000010f8/annotate +20")
        self.assertEqual(len(self.ask("audit", "--limit", "1").splitlines()), 2)
        newest = json.loads(self.ask("audit", "--json", "--limit", "1"))["items"]
        self.assertEqual([item["method"] for item in newest], ["POST"])

    def test_filters_reach_the_server(self):
        self.assertIn("No slow ranks.", self.ask("slow-ranks", "--job", "resnet"))
        self.assertIn("No slow ranks.", self.ask("slow-ranks", "--class", "network"))
        self.assertEqual(len(self.ask("jobs", "--state", "hung").splitlines()), 3)
        self.assertEqual(len(self.ask("incidents", "--state", "firing").splitlines()), 3)
        self.assertEqual(self.ask("incidents", "--since", "2099-01-01T00:00:00Z"),
                         "No incidents.\n")

    def test_the_exit_code_tells_a_finding_where_it_is_asked_for(self):
        self.ask("slow-ranks", "--exit-code", status=1)
        self.ask("slow-ranks", "--exit-code", "--job", "resnet", status=0)

    def test_an_incident_shows_its_evidence(self):
        text = self.ask("incidents", "00000000000000f1")
        for part in ("rank 5 computes 31 % slower than its 3 peers", "firing, critical",
                     "own work of the step", "412", "314.5", "1, 3, 7"):
            self.assertIn(part, text)

    # ---- acts ------------------------------------------------------------------------------------

    def test_people_handle_incidents(self):
        name = "00000000000000f2"
        self.assertEqual(self.ask("incidents", "acknowledge", name, "--by", "ann"),
                         f"{name}: acknowledged\n")
        self.assertRegex(self.ask("incidents", "silence", name, "--for", "1h", "--by", "bob"),
                         rf"^{name}: silenced until 20\d\d-")
        self.assertEqual(self.ask("incidents", "annotate", name, "switch 3 is replaced"),
                         f"{name}: annotated\n")
        shown = self.ask("incidents", name)
        for part in ("by ann", "by bob", ": switch 3 is replaced"):
            self.assertIn(part, shown)
        self.assertRegex(self.ask("incidents", "--state", "firing"), rf"{name} .* silenced ")
        self.assertIn("silenced", self.ask("top", "--once"))
        self.ask("incidents", "unsilence", name)
        self.assertRegex(self.ask("incidents", "--state", "firing"), rf"{name} .* acknowledged ")
        handling = json.loads(self.ask("incidents", "unacknowledge", name, "--json"))["handling"]
        self.assertEqual((handling["acknowledged"], handling["notes"]), (None, 1))

    def test_acts_that_cannot_be_are_refused_in_words(self):
        self.refused(["incidents", "silence", *self.where], 2, "usage", "silence ID")
        self.refused(["incidents", "annotate", "f1", *self.where], 2, "annotate ID TEXT")
        self.refused(["incidents", "mute", "f1", *self.where], 2, "'mute' is none of")
        self.refused(["incidents", "silence", "none", *self.where], 8, "incident has this id")
        self.refused(["incidents", "silence", "00000000000000f1", "--watch", *self.where], 2,
                     "would repeat")
        self.refused(["jobs", "rebaseline", "00000000000000a1", "--watch", *self.where], 2,
                     "would repeat")
        self.refused(["jobs", "stop", "a1", *self.where], 2, "show, rebaseline")
        self.refused(["jobs", "rebaseline", "00000000000000ff", *self.where], 8, "no ")

    def test_one_job_is_shown_and_learned_again(self):
        name = "00000000000000a1"
        self.assertRegex(self.ask("jobs", "show", name), r"(?m)^key +10\.0\.0\.1:29500/run$")
        self.assertEqual(json.loads(self.ask("jobs", "show", name, "--json")),
                         self.rest(f"/api/v1/jobs/{name}"))
        self.assertIn("learned again", self.ask("jobs", "rebaseline", name))
        ranks = json.loads(self.ask("jobs", name, "--node", "gpu-02", "--json"))["items"]
        self.assertEqual([rank["rank"] for rank in ranks], [2, 3])

    def test_a_metric_of_a_node_is_a_table_of_minutes(self):
        lines = self.ask("nodes", "gpu-01", "cpu_busy").splitlines()
        self.assertRegex(lines[0], r"^MINUTE UNTIL +\S+$")
        self.assertRegex(lines[1], r"^20\d\d-.*Z ")
        self.assertEqual(json.loads(self.ask("nodes", "gpu-01", "cpu_busy", "--json")),
                         self.rest("/api/v1/nodes/gpu-01/series?metric=cpu_busy"))
        self.assertEqual(len(self.ask("nodes", "--state", "unobserved").splitlines()), 2)
        self.assertIn("level 0", self.ask("level", "--node", "gpu-99"))

    # ---- events ----------------------------------------------------------------------------------

    def test_events_are_followed_and_resumed(self):
        with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
            where = ["--server", f"http://127.0.0.1:{server.port}",
                     "--token-file", f"{directory}/token"]
            process = subprocess.Popen([NEUTRACER, "events", "--json", "--limit", "2", *where],
                                       stdout=subprocess.PIPE, text=True, env=environment())
            for count in range(600):  # until the stream is open
                server.put("firing", f"{0xe000 + count:016x}")
                if select.select([process.stdout], [], [], 0.1)[0]:
                    break
            server.put("firing", "00000000000000e2")
            events = [json.loads(line) for line in process.communicate(timeout=30)[0].splitlines()]
            again = run("events", "--limit", "1", "--after", events[0]["id"], *where).stdout
            server.stop()
        self.assertEqual([event["event"] for event in events], ["incident"] * 2)
        self.assertEqual(events[0]["data"]["change"], "opened")
        self.assertRegex(again, r"^20\S+Z +incident +opened, critical, compute, llm-70b.*: rank 5")

    def test_events_without_an_aggregator_end(self):
        self.refused(["events", "--server", "http://127.0.0.1:9"], 7, "Start neutracer-aggregator")
        self.refused(["events", "--after", "x", *self.where], 2, "after")

    # ---- terminals -------------------------------------------------------------------------------

    def test_tables_fit_the_terminal(self):
        for words in (["slow-ranks"], ["jobs"], ["jobs", "00000000000000a1"], ["incidents"]):
            for columns in (160, 100, 80):
                shown = without_colours(run_on_terminal(columns, *words, *self.where))
                widest = max(len(line) for line in shown.replace("\r", "").split("\n"))
                self.assertLessEqual(widest, columns, shown)

    def test_colours_are_for_terminals_that_want_them(self):
        self.assertIn("\x1b[31;1m", run_on_terminal(120, "slow-ranks", *self.where))
        self.assertNotIn("\x1b", run_on_terminal(120, "slow-ranks", *self.where, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.ask("slow-ranks"))

    def test_a_job_from_a_stranger_does_not_command_the_terminal(self):
        self.assertIn('<b>"evil"?[31m', self.ask("jobs"))
        shown = run_on_terminal(160, "jobs", *self.where, NO_COLOR="1")
        self.assertNotIn("\x1b", shown)

    def test_a_closed_output_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([NEUTRACER, "jobs", *self.where], stdout=full,
                                  stderr=subprocess.PIPE, text=True, env=environment())
        self.assertEqual(done.returncode, 9)
        self.assertIn("No space left", done.stderr)

    # ---- failures --------------------------------------------------------------------------------

    def refused(self, words, status, *parts):
        done = run(*words)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_without_an_aggregator_it_says_how_to_get_one(self):
        self.refused(["slow-ranks", "--server", "http://127.0.0.1:9"], 7,
                     "cannot connect to the aggregator at http://127.0.0.1:9", "Start neutracer-aggregator",
                     "neutracer-aggregator", "--server")

    def test_a_token_that_is_missing_or_wrong_is_told_apart(self):
        server = ["--server", f"http://127.0.0.1:{self.server.port}"]
        self.refused(["jobs", *server, "--token-file", "/no/such"], 7, "requires a token",
                     "/no/such", "No such file")
        wrong = pathlib.Path(self.directory.name) / "wrong"
        wrong.write_text("not-the-right-token\n")
        self.refused(["jobs", *server, "--token-file", str(wrong)], 7, "rejects the token")

    def test_what_is_not_there_is_said(self):
        self.refused(["jobs", "00000000000000ff", *self.where], 8, "no job has this id")
        self.refused(["incidents", "a/../b", *self.where], 8, "no incident has this id")

    def test_a_wrong_filter_is_a_mistake_of_the_command_line(self):
        self.refused(["jobs", "--state", "slow", *self.where], 2,
                     "'slow' is not one of running")
        self.refused(["incidents", "--since", "yesterday", *self.where], 2,
                     "'yesterday' is not a time such as")
        self.refused(["slow-ranks", "--server", "localhost:9480"], 2, "is not the URL")

    def test_a_mistyped_command_is_guessed(self):
        self.refused(["slow-rank"], 2, "did you mean 'slow-ranks'?")
        self.refused(["xyz"], 2, "neutracer help")
        done = run()
        self.assertEqual(done.returncode, 2)
        self.assertIn("no command given", done.stderr)

    def test_help_tells_the_options_of_each_command(self):
        for command in ("slow-ranks", "jobs", "incidents"):
            done = run("help", command)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--server", done.stdout)
            self.assertIn("--json", done.stdout)
            self.assertEqual(done.stdout, run(command, "--help").stdout)

    # ---- TLS -------------------------------------------------------------------------------------

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl")
    def test_https_is_verified(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
                 "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{directory}/key.pem",
                 "-out", f"{directory}/cert.pem"], check=True, capture_output=True)
            with Server(directory) as server:
                where = ["--server", f"https://127.0.0.1:{server.port}",
                         "--token-file", f"{directory}/token"]
                done = run("jobs", *where, "--ca-file", f"{directory}/cert.pem")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("llm-70b", done.stdout)
                self.refused(["jobs", *where], 7, "no secure connection", "--ca-file")
                server.stop()


if __name__ == "__main__":
    unittest.main()
