#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""/metrics in both formats: families whole and in one place, and right for promtool if it is here."""
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from server import Server


def scrape(server, accept):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/metrics",
        headers={"Authorization": f"Bearer {server.token}", "Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def check_families(text, suffix):
    """Each sample under its own head, each head once and with help."""
    typed, helped, current = set(), set(), None
    for line in text.splitlines():
        if line == "# EOF":
            continue
        word, kind, name = line.split()[:3] if line.startswith("#") else (None, None, None)
        if word and kind == "HELP":
            assert name not in helped, f"{name} has two helps"
            helped.add(name)
        elif word:
            assert kind == "TYPE" and name in helped and name not in typed, line
            typed.add(name)
            current = name
        else:
            sample = line.split("{")[0].split()[0]
            assert sample in (current, current + suffix), f"{sample} stands under {current}"
            float(line.rsplit(" ", 1)[1])


def main():
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        plain = scrape(server, "text/plain")
        check_families(plain, "")
        openmetrics = scrape(server, "application/openmetrics-text;version=1.0.0,text/plain;q=0.1")
        check_families(openmetrics, "_total")
        assert openmetrics.endswith("\n# EOF\n")
        server.stop()
    promtool = shutil.which("promtool")
    if not promtool:
        print("promtool is not here: only our own look at the metrics")
        return 0
    return subprocess.run([promtool, "check", "metrics"], input=plain, text=True).returncode


if __name__ == "__main__":
    sys.exit(main())
