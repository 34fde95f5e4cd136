#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The web page of the aggregator in a real browser, over the invented snapshot of tests/api. Prints a TAP
plan. live.py DIR leaves pictures there, for people."""

import base64
import os
import re
import sys
import tempfile
import time
import traceback

ROOM = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [ROOM, os.path.join(os.path.dirname(ROOM), "api")]
import browser as chromium  # noqa: E402
from check import equal, holds, pixels  # noqa: E402
from server import Server  # noqa: E402

JOB = "#/jobs/00000000000000a1"
REFUSED = "Failed to load resource: the server responded with a status of 401 (Unauthorized)"
MAP = "document.querySelector('#map')"
CONTRAST = """(() => {
  const light = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } };
  return [...document.querySelectorAll('h1,h2,h3,p,a,td,th,caption,figcaption,li,button,span,label')].filter(e => e.offsetParent && e.textContent.trim())
    .map(e => { const a = light(getComputedStyle(e).color), b = light(ground(e));
      return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + ' ' + e.className + ' ' + e.textContent.slice(0, 20)]; })
    .reduce((x, y) => y[0] < x[0] ? y : x); })()"""


class Live:
    """A browser that is logged in, in the order of the tests."""

    def __init__(self, page, server, directory):
        self.page, self.server, self.directory = page, server, directory
        self.base = f"http://127.0.0.1:{server.port}/"

    def clean(self, *expected):
        """Nothing was asked for but this server, and nobody complains."""
        equal([url[:80] for url in self.page.requests if not url.startswith((self.base, "data:,"))], [], "requests")
        equal([text for text in self.page.troubles if text not in expected], [], "troubles")

    def go(self, view, until):
        self.page.ask(f"location.hash = {view!r}")
        self.page.until(until)

    def text(self, selector):
        return self.page.ask(f"document.querySelector({selector!r})?.textContent")

    def count(self, selector):
        return self.page.ask(f"document.querySelectorAll({selector!r}).length")

    def picture(self, name):
        path = os.path.join(self.directory, name)
        self.page.picture(path)
        return path

    def rows(self, name):
        """The pixels of the map as it is on the screen."""
        left, top, width, height = self.page.ask(f"({MAP}.scrollIntoView({{block: 'center'}}), (b => [b.x, b.y, b.width, b.height])({MAP}.getBoundingClientRect()))")
        image = self.page.call("Page.captureScreenshot", {
            "format": "png", "clip": {"x": left + self.page.ask("scrollX"), "y": top + self.page.ask("scrollY"), "width": width, "height": height, "scale": 1}})
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))
        return pixels(path)

    def show_job(self, until=f"{MAP}?.dataset.drawn"):
        if self.page.ask("location.hash") != JOB:
            self.go(JOB, until)
        self.page.until(until)

    def reload(self, **how):
        """Opens the view that is shown anew."""
        view = self.page.ask("location.hash")
        self.page.open("about:blank")
        self.page.open(self.base + view, **how)

    # ---- the tests: one sentence each -------------------------------------------------------------

    def test_a_token_opens_the_page_by_keyboard_alone(self):
        self.page.open(self.base)
        self.page.until("document.activeElement?.id === 'token'")
        equal(self.page.ask("document.title"), "NeuTracer: log in", "title")
        self.page.type("wrong")
        self.page.press("Enter")
        self.page.until("document.querySelector('.error').textContent === 'The token is not valid.'")
        self.page.type(self.server.token)
        self.page.press("Enter")
        self.page.until("document.querySelectorAll('#firing article').length === 2")
        equal(self.text("h1"), "2 incidents are firing, 2 critical", "headline")
        equal(self.page.ask("document.cookie"), "", "what a script sees of the cookie")
        equal(self.page.ask("localStorage.length + sessionStorage.length"), 0, "what is stored")
        self.picture("overview.png")
        self.clean(REFUSED)

    def test_a_session_outlasts_a_reload(self):
        self.reload()
        self.page.until("document.querySelectorAll('#firing article').length === 2")
        self.clean()

    def test_the_overview_says_who_since_when_and_at_what_cost(self):
        facts = self.text("#firing article .facts")
        for fact in ("rank 5, node gpu-07", "2026-11-21 03:00:12 UTC", "×1.31", "12.4 GPU hours", "compute"):
            holds(fact in facts, f"{fact} is not in {facts}")
        holds("llm-70b" in self.text("#jobs tbody") and "hung" in self.text("#jobs tbody"), "jobs")
        equal(self.text("#nodes tbody th"), "gpu-01", "the node with the highest score")
        holds("5 %" in self.text("#links tbody"), "links")

    def test_a_new_incident_appears_by_itself(self):
        self.page.until("document.querySelector('#state').dataset.state === 'live'", 40)
        self.page.ask("window.same = true")
        holds(self.server.put("firing", "00000000000000f7"), "the store refuses")
        self.page.until("document.querySelectorAll('#firing article').length === 3")
        holds(self.server.put("resolved", "00000000000000f7"), "the store refuses")
        self.page.until("document.querySelectorAll('#firing article').length === 2")
        equal(self.page.ask("window.same"), True, "the page was not loaded again")

    def test_the_map_marks_the_culprit_in_light_and_dark(self):
        self.show_job()
        for dark in (False, True):
            self.reload(dark=dark)
            self.show_job()
            self.page.settle()
            self.picture("job-dark.png" if dark else "job.png")
            shot = self.rows("map.png")
            ground = shot[8][4]
            holds(max(ground) < 64 if dark else min(ground) > 192, f"the ground is {ground}")
            for row in range(8):
                pixel = shot[16 * row + 8][int(len(shot[0]) * 0.8)]
                # The strength is in the opacity: it is mixed with the ground.
                is_orange = pixel[0] - pixel[2] > 60
                holds(is_orange == (row == 5), f"row {row} is {pixel}, dark {dark}")
            worst, where = self.page.ask(CONTRAST)
            holds(worst >= 4.5, f"dark {dark}: {worst:.2f} at {where}")
        self.reload()
        self.show_job()

    def test_keys_read_out_the_map_and_open_a_rank(self):
        self.show_job()
        self.page.ask("document.body.focus()")
        for _ in range(40):
            self.page.press("Tab")
            if self.page.ask("document.activeElement.id") == "map":
                break
        equal(self.page.ask("document.activeElement.id"), "map", "what Tab comes to")
        self.page.press("n")
        self.page.press("End")
        said = self.text("#map-value")
        holds(said.startswith("rank 5, 03:00:02 to 03:00:12 UTC: own work 98 % of a step, waiting 2 % of a step; 28 % of a step more"), said)
        holds("Named by incident" in said, said)
        self.page.press("ArrowUp")
        self.page.press("Home")
        holds(self.text("#map-value").startswith("rank 4, 02:58:12 to "), self.text("#map-value"))
        self.page.press("n")
        self.page.press("Enter")
        self.page.until("document.querySelector('main').textContent.includes('Own work of peers')")
        self.clean()

    def test_own_work_and_waiting_are_shown_as_well(self):
        self.show_job()
        before = self.page.ask(f"{MAP}.querySelector('canvas').toDataURL().length")
        for series in ("own", "waiting"):
            self.page.ask(f"document.querySelector('[data-series={series}]').click()")
            self.page.settle()
            equal(self.page.ask(f"document.querySelector('[data-series={series}]').getAttribute('aria-pressed')"), "true", series)
            holds(self.page.ask(f"{MAP}.querySelector('canvas').toDataURL().length") != before, f"the map of {series} is that of excess")
        self.page.ask("document.querySelector('[data-series=excess]').click()")

    def test_new_cells_are_added_to_the_map(self):
        self.show_job()
        self.page.requests.clear()
        holds(self.server.put("cells", "13"), "the server has no cells")
        # Cells come without an event; any other event causes a look at them, too.
        self.server.put("firing", "00000000000000f8")
        self.page.ask(f"{MAP}.focus()")
        self.page.until(f"({MAP}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'End', bubbles: true}})), "
                        "document.querySelector('#map-value').textContent.includes('03:00:12 to 03:00:22'))", 40)
        self.page.press("n")
        for column, work in (("End", 98), ("Home", 92)):
            self.page.press(column)
            said = self.text("#map-value")
            holds(f"own work {work} % of a step" in said, f"what is appended is not in its place: {said}")
        asked = [url for url in self.page.requests if "/timeline" in url]
        holds(asked and all("since=" in url for url in asked), f"the whole timeline was read again: {asked}")
        self.server.put("resolved", "00000000000000f8")

    def test_links_are_a_matrix(self):
        self.show_job()
        self.page.ask("document.querySelector('.matrix').focus()")
        self.page.press("ArrowDown")
        self.page.press("End")
        said = self.text("#main > section:last-of-type .value")
        holds("rank 0 to rank 1: 1 links, errors and retransmits 5 %, latency 12.5 µs, throughput 11.5 GB/s" in said, said)

    def test_an_incident_is_acknowledged_silenced_and_annotated(self):
        self.go("#/incidents/00000000000000f1", "document.querySelector('#acknowledge')?.offsetParent")
        holds("Nobody" in self.text("#handled"), self.text("#handled"))
        self.page.ask("document.querySelector('#person').focus()")
        self.page.type("ann <b>")
        self.page.ask("document.querySelector('#acknowledge').click()")
        self.page.until("document.querySelector('#handled').textContent.startsWith('acknowledged by ann <b> at ')")
        self.page.ask("document.querySelector('#silence').click()")
        self.page.until("document.querySelector('#handled').textContent.includes('silenced by ann <b> until ')")
        self.page.ask("document.querySelector('#note').focus()")
        self.page.type("drained <img src=x>")
        self.page.press("Enter")
        self.page.until("document.querySelector('.history').textContent.includes('Note by ann <b>: drained <img src=x>')")
        equal(self.page.ask("document.querySelector('#note').value"), "", "the note's field")
        self.picture("incident.png")
        for button in ("silence", "acknowledge"):
            self.page.ask(f"document.querySelector('#{button}').click()")
            self.page.until(f"document.querySelector('#{button}').textContent === '{button.capitalize()}'")
        holds("Nobody" in self.text("#handled"), self.text("#handled"))
        self.clean()

    def test_names_that_attack_the_page_are_only_text(self):
        for state, number in (("attacking", "ea"), ("hostile", "eb")):
            incident = "00000000000000" + number
            holds(self.server.put(state, incident), "the store refuses")
            self.go(f"#/incidents/{incident}", f"document.querySelector('main code')?.textContent === '{incident}' || "
                    f"[...document.querySelectorAll('main code')].some(c => c.textContent === '{incident}')")
            self.go("#/", "document.querySelectorAll('#firing article').length >= 3")
            self.go("#/incidents", "document.querySelector('main table')")
        equal(self.count("img, iframe, object, embed, base, form:not(:has(#note)), [onload], [onerror]"), 0, "elements that nobody made")
        equal(self.count("script"), 1, "scripts")
        self.go("#/incidents/00000000000000ea", "document.querySelector('main details')")
        holds("<img src=x" in self.text("h1") and "<img src=x" in self.text("details code"), "names are not text")
        holds("got" != self.page.ask("document.title"), "a script of a name ran")
        self.picture("attacked.png")
        self.clean()
        for number in ("ea", "eb"):
            self.server.put("resolved", "00000000000000" + number)

    def test_the_policy_forbids_scripts_styles_and_requests(self):
        self.page.ask("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.got = 1'}))")
        self.page.ask("document.body.append(Object.assign(document.createElement('img'), {src: 'https://example.com/x.png'}))")
        self.page.ask("document.body.setAttribute('style', 'color: red')")
        asked = self.page.call("Runtime.evaluate", {
            "expression": "fetch('https://example.com/').then(() => 'got', () => 'refused')",
            "awaitPromise": True, "returnByValue": True})["result"]["value"]
        equal(asked, "refused", "a request")
        equal(self.page.ask("window.got"), None, "a script")
        holds(self.page.ask("getComputedStyle(document.body).color") != "rgb(255, 0, 0)", "a style")
        self.page.settle()
        holds(len([t for t in self.page.troubles if "Content Security Policy" in t]) >= 3, f"the browser says {self.page.troubles}")
        self.reload()

    def test_a_narrow_screen_needs_no_scrolling_sideways(self):
        views = (("#/", "document.querySelector('#links table, #links p')"), (JOB, f"{MAP}?.dataset.drawn"),
                 ("#/nodes", "document.querySelector('main table')"), ("#/incidents/00000000000000f1", "document.querySelector('main table')"))
        self.reload(width=360, height=700)
        for view, until in views:
            self.go(view, until)
            self.page.until(until)
            wide = self.page.ask("document.documentElement.scrollWidth")
            holds(wide <= 360, f"{view} is {wide} wide")
            if view == JOB:
                self.picture("narrow.png")
        self.reload()

    def test_a_screen_reader_finds_its_way(self):
        self.go("#/", "document.querySelector('#links table')")
        tree = self.page.tree()
        roles = [role for role, _ in tree]
        for role in ("main", "navigation", "heading", "table", "columnheader", "rowheader", "status"):
            holds(role in roles, f"no {role}")
        equal(self.count("th:not([scope])"), 0, "headers without scope")
        self.show_job()
        holds(any(role == "application" and "arrow keys" in name for role, name in self.page.tree()), "the map has no name")
        levels = self.page.ask("[...document.querySelectorAll('h1,h2,h3')].filter(h => h.offsetParent).map(h => +h.tagName[1])")
        equal(levels[0], 1, "the first heading")

    def test_without_events_the_page_asks_again_by_itself(self):
        self.page.call("Network.setBlockedURLs", {"urls": ["*/api/v1/events*"]})
        self.go("#/", "document.querySelector('#firing article')")
        self.reload()
        self.page.until("document.querySelector('#state').dataset.state === 'polling'")
        holds(self.server.put("firing", "00000000000000f9"), "the store refuses")
        self.page.until("document.querySelector('#incident-00000000000000f9')")
        self.server.put("resolved", "00000000000000f9")
        self.page.call("Network.setBlockedURLs", {"urls": []})
        self.reload()
        self.page.until("document.querySelector('#state').dataset.state === 'live'", 40)

    def test_what_does_not_exist_is_said(self):
        self.go("#/jobs/00000000000000b2", "document.querySelector('#map-help')?.textContent.startsWith('No cells of this job')")
        self.go("#/jobs/00000000000000ff", "document.querySelector('h1')?.textContent === 'Not found'")
        for address in ("#/nowhere", "#/jobs/%", "#/incidents/%zz"):
            self.go("#/", "document.querySelector('#firing article')")
            self.go(address, "document.querySelector('.error')?.textContent === 'There is no such page.'")
            equal(self.page.ask("document.title"), "NeuTracer", "title")
        self.go("#/", "document.querySelector('#firing article')")

    def test_tabs_begin_and_end_together(self):
        self.page.ask("new BroadcastChannel('neutracer/').postMessage('ended')")
        self.page.until("document.querySelector('.error')?.textContent === 'The session was ended in another tab.'")
        equal(self.text("#state"), "", "state of no connection")
        self.page.ask("new BroadcastChannel('neutracer/').postMessage('began')")
        self.page.until("document.querySelector('#firing article')")
        # Another tab has logged in: this one's CSRF token is of no use any more, and it still ends the session.
        self.page.ask("fetch('api/v1/session', {method: 'POST', headers: {Authorization: 'Bearer %s'}})"
                      ".then((answer) => { window.status1 = answer.status; })" % self.server.token)
        self.page.until("window.status1 === 200")
        self.page.ask("document.querySelector('#leave').click()")
        self.page.until("document.activeElement?.id === 'token'")
        self.page.ask("fetch('api/v1/session').then((answer) => { window.status2 = answer.status; })")
        self.page.until("window.status2 === 401")
        time.sleep(1)  # longer than changes are gathered
        equal(self.text("#state"), "", "state after the end")
        self.page.type(self.server.token)
        self.page.press("Enter")
        self.page.until("document.querySelector('#firing article')")

    def test_a_lost_server_is_said_and_the_end_of_a_session_leads_to_the_token(self):
        self.page.ask("document.querySelector('#leave').click()")
        self.page.until("document.activeElement?.id === 'token'")
        self.page.type(self.server.token)
        self.page.press("Enter")
        self.page.until("document.querySelector('#firing article')")
        self.server.kill()
        self.page.until("document.querySelector('#state').dataset.state === 'stale'", 40)
        holds(re.match(r"Stale since \d\d:\d\d:\d\d UTC", self.text("#state")), self.text("#state"))
        holds(self.count("#firing article") >= 2, "what was known is not shown any more")
        self.picture("stale.png")


class Large:
    """A job of 16,384 ranks. Only states: its figures are those of bench/page.py."""

    def __init__(self, page, server, directory):
        self.live = Live(page, server, directory)
        self.page = page

    def test_a_large_job_is_one_screen_and_its_ranks_scroll(self):
        live, page = self.live, self.page
        page.open(live.base)
        page.until("document.querySelector('#token')")
        page.type(live.server.token)
        page.press("Enter")
        page.until("document.querySelector('#firing article')")
        live.go(JOB, f"{MAP}?.dataset.drawn")
        holds(page.ask(f"{MAP}.scrollHeight <= {MAP}.clientHeight + 1"), "all ranks at once do not fit")
        live.picture("large.png")
        page.ask(f"{MAP}.focus()")
        page.press("n")
        holds(live.text("#map-value").startswith("0–34"), live.text("#map-value"))
        page.press("z")
        page.until(f"{MAP}.scrollHeight > 16384 * 16 && document.querySelector('#map-value').textContent.startsWith('rank 5,')")
        page.ask(f"{MAP}.scrollTop = 1e9")
        page.until(f"{MAP}.dataset.rows.endsWith('-16384')")
        page.press("PageDown")
        for _ in range(4):
            page.press("End")
        for step in range(40):
            page.ask(f"{MAP}.scrollTop = {step} * 6500")
        page.until(f"{MAP}.dataset.rows === '15843-15874'")
        holds(page.ask("document.querySelectorAll('*').length") < 600, "elements grow with ranks")
        live.picture("large-ranks.png")
        live.clean(REFUSED)


def run(kind, page, server, directory, number):
    failed = 0
    tests = [name for name in vars(kind) if name.startswith("test_")]
    room = kind(page, server, directory)
    for name in tests:
        number += 1
        try:
            getattr(room, name)()
            print(f"ok {number} - {name[5:]}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            print(f"not ok {number} - {name[5:]}\n# {str(error)[:2000]}", flush=True)
    return failed, number


def main():
    path = chromium.find()
    if not path:
        print("skip: browser: there is none of " + ", ".join(chromium.NAMES))
        return 77
    failed = number = 0
    pictures = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    print(f"1..{sum(name.startswith('test_') for kind in (Live, Large) for name in vars(kind))}")
    page = chromium.Browser(path)
    try:
        for kind, ranks in ((Live, "8"), (Large, "16384")):
            with tempfile.TemporaryDirectory() as directory, Server(directory, NT_TEST_RANKS=ranks) as server:
                bad, number = run(kind, page, server, pictures, number)
                failed += bad
    finally:
        page.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
