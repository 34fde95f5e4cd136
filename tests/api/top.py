#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""`neutracer top` on a terminal, against the real REST interface."""
import http.server
import json
import os
import re
import signal
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.parse

from command import NEUTRACER, OverRest, environment, run
from screen import Screen
from server import Server


class Large(http.server.ThreadingHTTPServer):
    """A server with more ranks and nodes than are shown, whose one culprit is the last rank."""

    def __init__(self):
        self.pages = {"incidents": 0, "jobs": 0, "nodes": 0, "ranks": 0}
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def items(self, name, query):
        start = int(query.get("cursor", ["0"])[0])
        self.pages[name] += 1
        if name == "incidents":
            return [{"id": "f", "severity": "critical", "class": "compute", "culprits": [
                {"kind": "rank", "rank": 9000, "node": "far"}]}], None
        if name == "jobs":
            return [{"id": "a", "name": "big", "incidents": ["f"]}], None
        if name == "nodes":
            return [{"node": f"n{start + i}"} for i in range(1000)], str(start + 1000)
        ranks = [8999, 9000] if "node" in query else range(start, start + 1000)
        return [{"rank": rank, "rank_known": True, "node": "far" if rank > 8000 else "near",
                 "step_seconds": 0.6, "own_seconds": 0.5 if rank == 9000 else 0.3}
                for rank in ranks], None if "node" in query else str(start + 1000)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            items, after = self.server.items(url.path.split("/")[-1],
                                             urllib.parse.parse_qs(url.query))
            body = json.dumps({"items": items, "next": after}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Top(OverRest):
    def open(self, *words, columns=80, rows=24, where=None, **more):
        screen = Screen([NEUTRACER, "top", *(where or self.where), *words],
                        environment(TERM="xterm", **more), columns, rows)
        self.addCleanup(screen.close)
        return screen

    def ends(self, screen, status=0):
        self.assertEqual(screen.await_end(), status, screen.text())
        self.assertTrue(screen.is_restored(), screen.output[-200:])

    # ---- views and keys --------------------------------------------------------------------------

    def test_the_first_view_has_all_lists(self):
        screen = self.open()
        text = screen.await_text("gpu-02 .*unobserved")
        for pattern in ("FIRING INCIDENTS  2", "JOBS  3", "RANKS OF llm-70b  8",
                        r"> critical +rank 5 +llm-70b +compute +×1.31", "5 +gpu-03 +compute +412"):
            self.assertRegex(text, pattern)
        self.assertLessEqual(max(map(len, screen.rows)), 80)
        screen.press("q")
        self.ends(screen)

    def test_keys_select_open_filter_and_pause(self):
        screen = self.open()
        screen.await_text("gpu-02 .*unobserved")
        screen.press("\x1b[Bjj")
        screen.await_text(r"^> .*<b>\"evi")
        screen.press("\x1bOA")
        screen.await_text(r"^> llm-70b +running")
        screen.press("\r")
        screen.await_text(r"^key +10\.0\.0\.1:29500/run")
        screen.press("\x1b")
        screen.await_text("JOBS  3")
        screen.press("3")
        text = screen.await_text(r"\[3 nodes\]")
        self.assertNotIn("JOBS", text)
        screen.press("/gpu-02\r")
        screen.await_text("NODES  1")
        screen.press("\x1b")
        screen.await_text("gpu-02 .*unobserved")
        screen.press("p")
        screen.await_text("PAUSED")
        screen.press("?")
        screen.await_text("Ctrl-Z +suspend")
        screen.press("q")
        self.ends(screen)

    def test_another_job_shows_its_ranks(self):
        screen = self.open(rows=40)
        screen.await_text("RANKS OF llm-70b  8")
        screen.press("jjjj\r\x1b")
        screen.await_text(r"RANKS OF resnet  0")
        screen.press("q")
        self.ends(screen)

    def test_it_follows_the_size_of_the_terminal(self):
        screen = self.open()
        screen.await_text("gpu-02 .*unobserved")
        for columns, rows in ((40, 12), (20, 4), (9, 2), (1, 1), (200, 50)):
            screen.output = b""
            screen.resize(columns, rows)
            while b"\x1b[2J" not in screen.output:
                self.assertTrue(screen.read(5))
            screen.read(0.1)
            self.assertLessEqual(max(map(len, screen.rows)), columns)
            self.assertFalse(any(screen.rows[rows:]))
        screen.await_text("gpu-02 .*unobserved")
        screen.press("q")
        self.assertEqual(screen.await_end(), 0)

    # ---- a large job -----------------------------------------------------------------------------

    def test_of_a_large_job_the_ranks_of_culprits_are_not_missing(self):
        with Large() as large:
            done = run("top", "--once", "--server", large.url)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # 4 pages of 1000, and two more of 9000 on the culprit's node
        self.assertIn("RANKS OF big  4002: the first ones, and those on nodes of culprits",
                      done.stdout)
        self.assertRegex(done.stdout, r"9000 +far +compute +500.0 ms")
        self.assertIn("NODES  16000+", done.stdout)
        self.assertEqual(large.pages, {"incidents": 1, "jobs": 1, "nodes": 16, "ranks": 5})

    # ---- text ------------------------------------------------------------------------------------

    def test_names_from_strangers_and_locales(self):
        plain = self.open(LC_ALL="C", NO_COLOR="1")
        text = plain.await_text("gpu-02 .*unobserved")
        self.assertIn('<b>"evi', text)
        self.assertTrue(text.isascii(), text)
        self.assertRegex(text, r"##+\.")
        self.assertNotRegex(plain.output.decode(), r"\x1b\[[1-9][0-9;]*m")
        plain.press("q")
        self.ends(plain)

    def test_one_frame_needs_no_terminal(self):
        for words in ([], ["--once"]):
            done = run("top", *self.where, *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("RANKS OF llm-70b  8", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertLessEqual(max(map(len, done.stdout.split("\n"))), 80)

    # ---- --watch ---------------------------------------------------------------------------------

    def watch(self, *words, **more):
        screen = Screen([NEUTRACER, *words, *self.where, "--watch", "--every", "500ms"],
                        environment(TERM="xterm", **more))
        self.addCleanup(screen.close)
        return screen

    def test_a_watched_table_is_repeated_in_place(self):
        screen = self.watch("incidents")
        text = screen.await_text(r"more lines$")
        self.assertRegex(text.split("\n")[0], r"^20\d\d-.*Z, every 0\.5 s")
        self.assertEqual(len(text.split("\n")), 24)
        first = text.split("\n")[0]
        screen.await_text(r"\A(?!%s)20\d\d-[^$]*more lines$" % re.escape(first))
        self.assertLessEqual(max(map(len, screen.rows)), 80)
        os.kill(screen.pid, signal.SIGINT)
        screen.await_end()
        self.assertEqual(screen.before, termios.tcgetattr(screen.fd))

    def test_a_watched_table_becomes_stale(self):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(directory)
            screen = Screen([NEUTRACER, "jobs", "--watch", "--every", "500ms", "--server",
                             f"http://127.0.0.1:{server.port}", "--token-file",
                             f"{directory}/token"], environment(TERM="xterm"))
            self.addCleanup(screen.close)
            screen.await_text("llm-70b")
            server.kill()
            screen.await_text(r"^STALE since .*cannot connect[^$]*^llm-70b")

    def test_watched_json_is_one_document_a_line(self):
        process = subprocess.Popen([NEUTRACER, "slow-ranks", *self.where, "--json", "--watch",
                                    "--every", "500ms"], stdout=subprocess.PIPE, text=True,
                                   env=environment())
        try:
            documents = [json.loads(process.stdout.readline()) for _ in range(2)]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        self.assertEqual([len(document["items"]) for document in documents], [2, 2])

    def test_a_watch_that_fails_at_once_ends(self):
        for command in ("slow-ranks", "jobs", "incidents", "nodes"):
            done = run(command, "--watch", "--server", "http://127.0.0.1:9")
            self.assertEqual((done.returncode, done.stdout), (7, ""))
            self.assertIn("Start neutracer-aggregator", done.stderr)

    # ---- ends ------------------------------------------------------------------------------------

    def test_the_terminal_is_restored_on_signals_and_crashes(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV,
                       signal.SIGABRT):
            screen = self.open()
            screen.await_text("gpu-02 .*unobserved")
            os.kill(screen.pid, number)
            ended = os.WTERMSIG(screen.await_end())
            if number not in (signal.SIGSEGV, signal.SIGABRT):  # a sanitizer ends it otherwise
                self.assertEqual(ended, number)
            self.assertTrue(screen.is_restored(), number)

    def test_it_can_be_suspended(self):
        screen = self.open()
        screen.await_text("gpu-02 .*unobserved")
        screen.press("\x1a")
        _, status = os.waitpid(screen.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        screen.read(1)
        self.assertTrue(screen.is_restored())
        os.kill(screen.pid, signal.SIGCONT)
        screen.rows = [""] * 500
        screen.await_text("gpu-02 .*unobserved")
        self.assertFalse(screen.is_restored())
        screen.press("\x03")
        self.assertEqual(os.WTERMSIG(screen.await_end()), signal.SIGINT)
        self.assertTrue(screen.is_restored())

    def test_a_server_that_is_gone_leaves_stale_data(self):
        with tempfile.TemporaryDirectory() as directory:
            server = Server(directory)
            screen = self.open("--every", "500ms",
                               where=["--server", f"http://127.0.0.1:{server.port}",
                                      "--token-file", f"{directory}/token"])
            screen.await_text("gpu-02 .*unobserved")
            server.kill()
            screen.await_text(r"^STALE since \d\d:\d\d:\d\d UTC[^$]*^RANKS OF llm-70b  8")
            screen.press("q")
            self.ends(screen)

    def test_keys_do_not_wait_for_a_request(self):
        screen = self.open("--every", "500ms")
        screen.await_text("gpu-02 .*unobserved")
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(1)
            screen.press("3")
            screen.await_text(r"\[3 nodes\]", seconds=20)
            screen.press("q")
            self.assertEqual(screen.await_end(seconds=20), 0)
        finally:
            self.server.process.send_signal(signal.SIGCONT)

    def test_without_any_data_it_ends_with_the_remedy(self):
        screen = self.open(where=["--server", "http://127.0.0.1:9"])
        self.assertEqual(os.WEXITSTATUS(screen.await_end()), 7)
        self.assertTrue(screen.is_restored())
        self.assertIn(b"Start neutracer-aggregator", screen.output)


if __name__ == "__main__":
    unittest.main()
