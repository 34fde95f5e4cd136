#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the web page in headless Chromium: page.py [RANKS]. First paint is the time from the
request of a job's view to its map on the screen, in a browser without a cache. A frame is the time
between two animation frames while the rows of single ranks are scrolled by a screen each."""
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", room) for room in ("page", "api")]
import browser as chromium  # noqa: E402
from server import Server  # noqa: E402

JOB = "jobs/00000000000000a1"
FRAMES = 200
DRAWN = "document.querySelector('#map')?.dataset.drawn"
NOTE = """(() => { const look = () => { const map = document.querySelector('#map');
  if (map?.dataset.drawn) window.painted = performance.now(); else requestAnimationFrame(look); }; look(); })()"""
SCROLL = f"""new Promise((done) => {{ const map = document.querySelector('#map'), took = []; let last = 0;
  const step = (now) => {{ if (last) took.push(now - last); last = now; map.scrollTop += map.clientHeight;
    if (map.scrollTop + map.clientHeight >= map.scrollHeight) map.scrollTop = 0;
    took.length < {FRAMES} ? requestAnimationFrame(step) : done(took); }}; requestAnimationFrame(step); }})"""


def log_in(page, base, token):
    page.open(base)
    page.until("document.querySelector('#token')")
    page.type(token)
    page.press("Enter")
    page.until("document.querySelector('#firing article')")


def paint(page, base):
    page.call("Network.setCacheDisabled", {"cacheDisabled": True})
    page.call("Page.addScriptToEvaluateOnNewDocument", {"source": NOTE})
    page.open("about:blank")
    page.open(f"{base}#/{JOB}")
    page.until("window.painted", 60)
    return page.ask("window.painted") / 1000


def scroll(page):
    page.ask("document.querySelector('#map-zoom').click()")
    page.until("document.querySelector('#map').scrollHeight > 20000", 60)
    answer = page.call("Runtime.evaluate", {"expression": SCROLL, "awaitPromise": True, "returnByValue": True})
    return sorted(answer["result"]["value"])


def main():
    ranks = sys.argv[1] if len(sys.argv) > 1 else "16384"
    path = chromium.find()
    if not path:
        raise SystemExit("there is none of " + ", ".join(chromium.NAMES))
    with tempfile.TemporaryDirectory() as directory, Server(directory, NT_TEST_RANKS=ranks) as server:
        server.put("cells", "180")
        base = f"http://127.0.0.1:{server.port}/"
        page = chromium.Browser(path)
        try:
            log_in(page, base, server.token)
            first = [paint(page, base) for _ in range(3)]
            took = scroll(page)
        finally:
            page.close()
        server.stop()
    print(f"{ranks} ranks: first paint {', '.join(f'{seconds:.2f}' for seconds in first)} s; frames while scrolling: "
          f"median {took[len(took) // 2]:.1f} ms, p99 {took[len(took) * 99 // 100]:.1f} ms, longest {took[-1]:.1f} ms")


if __name__ == "__main__":
    main()
