#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of `neutracer analyze --html` in a real browser: check.py DIR. Prints a TAP plan.

DIR holds ar.html, made of the recorded trace AR, nodes.html, made of recorded metrics, and what tests/page/pages.c writes. Pictures of
the pages are left there too, for people.
"""

import os
import re
import struct
import sys
import traceback
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as chromium  # noqa: E402

ORANGE = (0xd5, 0x5e, 0x00)
SEEN = [  # what an attacked name must look like to a person
    "</script><script>alert('script')</script>",
    "\"><img src=x onerror=alert('img')>",
    "' onmouseover='alert(1)' x='",
    "</title></style><svg onload=alert('svg')>",
    "<a href=\"https://example.com/\">click</a>",
    "?? broken ? turned ?[31m red ??",
    "<!-- --><base href=//example.com/>]]>",
    "&lt;script&gt; &amp; &#x3c;b&#x3e;",
]


def pixels(path):
    """The rows of a PNG as a browser writes it: 8 bits, RGB or RGBA."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        at += size + 12
        if name == b"IHDR":
            width, height, _, kind = struct.unpack(">IIBB", body[:10])
        elif name == b"IDAT":
            packed += body
    depth = {2: 3, 6: 4}[kind]
    raw, rows, above = zlib.decompress(packed), [], bytearray(width * depth)
    for y in range(height):
        start = y * (width * depth + 1)
        how, row = raw[start], bytearray(raw[start + 1:start + 1 + width * depth])
        for x in range(width * depth) if how else ():
            left = row[x - depth] if x >= depth else 0
            corner = above[x - depth] if x >= depth else 0
            if how == 1:
                guess = left
            elif how == 2:
                guess = above[x]
            elif how == 3:
                guess = (left + above[x]) // 2
            else:
                near = left + above[x] - corner
                guess = min((abs(near - v), i, v) for i, v in enumerate((left, above[x], corner)))[2]
            row[x] = (row[x] + guess) & 255
        rows.append([tuple(row[x * depth:x * depth + 3]) for x in range(width)])
        above = row
    return rows


def equal(is_, want, what):
    if is_ != want:
        raise AssertionError(f"{what}: is {is_!r}, want {want!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


class Pages:
    def __init__(self, page, directory):
        self.page, self.directory = page, directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def open(self, name, **how):
        took = self.page.open(self.path(name), **how)
        self.clean(name)
        return took

    def clean(self, name):
        """Nothing was asked for but the file and what it holds, and nobody complains."""
        foreign = [url[:80] for url in self.page.requests
                   if not url.startswith("data:image/png;") and not url.endswith("/" + name)]
        equal(foreign, [], f"requests of {name}")
        equal(self.page.troubles, [], f"troubles of {name}")

    def text(self, selector):
        return self.page.ask(f"document.querySelector({selector!r}).textContent")

    def count(self, selector):
        return self.page.ask(f"document.querySelectorAll({selector!r}).length")

    def box(self, selector):
        return self.page.ask(f"(b => [b.x + scrollX, b.y + scrollY, b.width, b.height])"
                             f"(document.querySelector({selector!r}).getBoundingClientRect())")

    def shoot(self, name):
        """A picture of the page as it is, in pixels."""
        self.page.picture(self.path(name))
        return pixels(self.path(name))

    def show(self, selector):
        self.page.ask(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")

    def value_at(self, plot, x, y):
        """What is read out at these parts of a picture's sides."""
        self.show(plot)
        left, top, width, height = self.page.ask(
            f"(b => [b.x, b.y, b.width, b.height])(document.querySelector('{plot} svg').getBoundingClientRect())")
        self.page.point(left + x * width, top + y * height)
        return self.page.ask(f"document.querySelector('{plot}').closest('figure').querySelector('.value').textContent")

    # ---- the tests: one sentence each -------------------------------------------------------------

    def test_the_verdict_is_a_sentence_with_its_evidence(self):
        self.open("ar.html")
        holds(re.match(r"rank 0 computes 1\d\d % slower than its 3 peers", self.text("h1")), self.text("h1"))
        equal(self.count("article"), 1, "verdicts")
        equal(self.text("article .severity"), "critical", "severity")
        holds("drain the node" in self.text("article .next"), "what to do is not said")
        rows = self.page.ask("[...document.querySelectorAll('article tbody tr')].map(r => "
                             "[...r.cells].map(c => c.textContent))")
        equal(rows[0], ["rank 0", "4, 8, 12"], "who")
        # How much it was until the end is the detection's to say.
        equal(rows[1][0], "own work of the step", "evidence")
        holds(re.fullmatch(r"4\d(\.\d)? s", rows[1][1]) and 2.2 < float(rows[1][3]) < 2.5, f"evidence: {rows[1]}")

    def test_the_picture_shows_the_culprit_in_light_and_dark(self):
        for dark in (False, True):
            self.open("ar.html", dark=dark)
            shot = self.shoot("ar-dark.png" if dark else "ar.png")
            left, top, width, height = self.box(".plot svg")
            ground = shot[5][5]
            holds(max(ground) < 64 if dark else min(ground) > 192, f"the ground is {ground}")
            for row in range(16):
                pixel = shot[int(top + (row + 0.5) * height / 16)][int(left + width / 2)]
                holds((pixel == ORANGE) == (row == 0), f"row {row} is {pixel}, dark {dark}")

    def test_values_are_read_out_under_the_pointer_and_by_keys(self):
        self.open("ar.html")
        said = self.value_at("#map-1", 0.99, 0.01)
        holds(said.startswith("rank 0, +20") and said.endswith(" % of a step more than its peers"), said)
        holds(self.value_at("#map-1", 0.5, 0.99).startswith("rank 60, "), "the last row")
        self.page.ask("document.querySelector('#map-1').focus()")
        for _ in range(20):
            self.page.press("ArrowUp")
        self.page.press("Home")
        said = self.text(".value")
        holds(said.startswith("rank 0, +0.0 s to +46"), said)
        self.page.press("ArrowDown")
        holds(self.text(".value").startswith("rank 4, +0.0 s"), self.text(".value"))
        equal(self.count(".cursor"), 1, "cursors")
        self.clean("ar.html")

    def test_without_script_all_but_the_reading_out_is_there(self):
        self.open("ar.html", script=False)
        shot = self.shoot("ar-noscript.png")
        left, top, width, height = self.box(".plot svg")
        equal(shot[int(top + height / 32)][int(left + width / 2)], ORANGE, "the culprit's row")
        holds("rank 0" in self.text("h1"), "the sentence")
        equal(self.text(".value"), "", "the value")
        row = self.page.ask("[...document.querySelectorAll('section:last-of-type tbody tr')][0].textContent")
        holds("44 of 44" in row, row)

    def test_a_screen_reader_finds_its_way(self):
        self.open("ar.html")
        tree = self.page.tree()
        roles = [role for role, _ in tree]
        for role in ("main", "heading", "table", "columnheader", "rowheader", "figure", "status"):
            holds(role in roles, f"no {role}")
        images = [name for role, name in tree if role in ("image", "img")]
        holds(any("Rows are ranks" in name for name in images), f"images are called {images}")
        holds(any(role == "application" and "arrow keys" in name for role, name in tree), "the plot has no name")
        equal(self.count("th:not([scope])"), 0, "headers without scope")
        equal(self.page.ask("document.documentElement.lang"), "en", "language")
        levels = self.page.ask("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
        holds(levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), f"headings {levels}")

    def test_text_stands_out_from_its_ground(self):
        contrast = """(() => {
          const light = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
            .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
          const ground = (e) => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } };
          return [...document.querySelectorAll('h1,h3,p,a,td,th,caption,figcaption,li,.severity,text')].map(e => {
            const style = getComputedStyle(e), svg = e.tagName === 'text';
            const a = light(svg ? style.fill : style.color), b = light(ground(e));
            return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + ' ' + e.className]; })
            .reduce((x, y) => y[0] < x[0] ? y : x); })()"""
        for name in ("ar.html", "large.html", "nodes.html"):
            for dark in (False, True):
                self.open(name, dark=dark)
                worst, where = self.page.ask(contrast)
                holds(worst >= 4.5, f"{name}, dark {dark}: {worst:.2f} at {where}")

    def test_a_narrow_screen_needs_no_scrolling_sideways(self):
        self.open("ar.html", width=360, height=700)
        holds(self.page.ask("document.documentElement.scrollWidth <= innerWidth"), "the page is too wide")
        self.page.picture(self.path("ar-narrow.png"))
        self.open("long.html", width=360, height=700)
        equal(self.count(".notes li"), 1, "notes")
        holds(self.page.ask("document.documentElement.scrollWidth <= innerWidth"), "long names make the page too wide")

    def test_names_that_attack_the_page_are_only_text(self):
        self.open("attacked.html")
        self.page.picture(self.path("attacked.png"))
        equal(self.count("a, img, base, iframe, object, embed, form, [onload], [onerror], [onmouseover]"), 0,
              "elements that nobody made")
        equal(self.count("script"), 1, "scripts")
        equal(self.page.ask("[...document.querySelectorAll('article h3')].every((h, i) => "
                            f"h.textContent.endsWith({SEEN!r}[h.closest('article').id.slice(8) - 1]))"), True, "summaries")
        equal(self.page.ask("document.title"), "NeuTracer: " + SEEN[1], "title")
        for index in range(1, 9):
            self.value_at(f"#map-{index}", 0.7, 0.5)
        self.clean("attacked.html")

    def test_the_policy_forbids_scripts_and_requests(self):
        self.open("attacked.html")
        self.page.ask("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.got = 1'}))")
        self.page.ask("document.body.append(Object.assign(document.createElement('img'), {src: 'https://example.com/x.png'}))")
        self.page.ask("document.body.setAttribute('style', 'color: red')")
        self.page.ask("document.body.setAttribute('onclick', 'window.got = 2'), document.body.click()")
        asked = self.page.call("Runtime.evaluate", {
            "expression": "fetch('https://example.com/').then(() => 'got', () => 'refused')",
            "awaitPromise": True, "returnByValue": True})["result"]["value"]
        equal(asked, "refused", "a request")
        equal(self.page.ask("window.got"), None, "a script")
        holds(self.page.ask("getComputedStyle(document.body).color") != "rgb(255, 0, 0)", "a style")
        self.page.settle()
        holds(len([t for t in self.page.troubles if "Content Security Policy" in t]) >= 4,
              f"the browser says {self.page.troubles}")

    def test_a_large_job_stays_usable(self):
        took = self.open("large.html")
        holds(os.path.getsize(self.path("large.html")) < 1 << 20, "the page is over 1 MiB")
        holds(self.count("*") < 2000, f"{self.count('*')} elements")
        holds(took < 20, f"loads in {took:.1f} s")
        self.page.picture(self.path("large.png"))
        said = self.value_at("#map-1", 0.75, (9000 // 64 + 0.5) / 256)
        holds(said.startswith("ranks 8960–9023, 2025-11-21 03:") and "25 % of a step more" in said, said)
        said = self.value_at("#map-1-ranks", 0.001, 0.01)
        holds(said.startswith("rank 300, ") and "127 % of a step or more" in said, said)
        named = self.page.ask("[...document.querySelectorAll('figure')].map(f => "
                              "[...f.querySelectorAll('.named')].map(t => t.textContent))")
        equal(named, [["8960–9023"], [f"rank {9000 + i}" for i in range(8)]], "rows that are named")
        frames = self.page.ask("[...document.querySelectorAll('#map-1 .mark')].map(m => "
                               "[m.classList.contains('wide'), m.querySelectorAll('.line').length])")
        equal(frames, [[False, 1], [True, 1]], "frames")
        self.clean("large.html")

    def test_the_largest_page_is_below_its_cap_and_opens(self):
        holds(os.path.getsize(self.path("worst.html")) <= 8 << 20, "the page is over 8 MiB")
        self.open("worst.html")
        equal(self.count("article"), 100, "verdicts")
        equal(self.count("figure"), 16, "pictures")
        holds("900 more" in self.page.ask("document.body.textContent"), "what is left out is not said")

    # ---- scored series of nodes --------------------------------------------------------------------

    def rows(self, selector):
        return self.page.ask(f"[...document.querySelectorAll({selector!r})].map(r => [...r.cells].map(c => c.textContent))")

    def test_each_node_has_a_row_and_one_with_an_alarm_a_chart(self):
        self.open("nodes.html")
        equal(self.text("h1"), "1 of 2 nodes had an alarm", "the headline")
        nodes = self.rows("section:first-of-type tbody tr")
        equal([row[0] for row in nodes], ["gpu-02", "gpu-01"], "order of nodes")
        equal([row[1] for row in nodes], ["alarm", "quiet"], "states")
        holds(nodes[0][7].endswith(" % of values") and nodes[1][7] == "–", f"missing: {nodes}")
        equal(self.count("figure"), 1, "charts")
        equal(self.count("script"), 0, "scripts")
        metrics = self.rows("article table:first-of-type tr")
        shares = [int(row[1].split()[0]) for row in self.rows("article .scroll:nth-of-type(1) tbody tr")]
        holds(shares and shares == sorted(shares, reverse=True) and shares[0] > 20, f"shares: {metrics}")
        units = {row[0]: row[-1] for row in self.rows("article .scroll:nth-of-type(1) tbody tr")}
        known = {"cpu_busy": "–", "tcp_retransmits": "segments/s", "memory_available_bytes": "bytes", "<i>odd</i>": "unknown"}
        holds(units.items() <= known.items() and len(units) > 1, f"units: {units}")
        alarms = self.rows("article .scroll:nth-of-type(2) tbody tr")
        holds(re.fullmatch(r"2025-11-2[12]T\d\d:\d\d:00Z", alarms[0][1]), f"begin of an alarm: {alarms[0]}")
        equal(len(alarms), int(nodes[0][2]), "alarms")
        holds("tcp_retransmits 5 %" in self.text("article .notes"), self.text("article .notes"))

    def test_a_link_leads_from_a_node_to_its_chart(self):
        self.open("nodes.html", height=300)
        self.page.ask("document.querySelector('tbody th a').click()")
        self.page.settle()
        top = self.page.ask("document.querySelector('#node-1').getBoundingClientRect().top")
        holds(-1 <= top <= 300, f"the chart is at {top}")
        self.clean("nodes.html")

    def test_a_chart_shows_score_threshold_alarms_and_gaps_in_light_and_dark(self):
        for dark in (False, True):
            self.open("nodes.html", dark=dark)
            shot = self.shoot("nodes-dark.png" if dark else "nodes.png")
            left, top, width, height = self.box("#chart-1 svg")
            plain = shot[int(top + 3)][int(left + width * 300 / 2000)]

            def colours(x):
                return {shot[int(top + y)][int(left + width * x)] for y in range(2, int(height) - 2)}

            def areas(kind):
                return self.page.ask(f"[...document.querySelectorAll('#chart-1 rect.{kind}')].map(r => "
                                     "[parseFloat(r.getAttribute('x')), parseFloat(r.getAttribute('width'))])")

            learned, missing, alarms = areas("learned"), areas("missing"), areas("alarm")
            equal(learned[0][0], 0, "begin of what is learned")
            holds(len(missing) == 1 and 49 < missing[0][0] < 51 and 4 < missing[0][1] < 6, f"missing: {missing}")
            middle = missing[0][0] / 100 + missing[0][1] / 200
            info, critical = [self.page.ask("(c => [c.slice(1, 3), c.slice(3, 5), c.slice(5, 7)].map(v => parseInt(v, 16)))"
                                            f"(getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim())")
                              for name in ("info", "critical")]

            def near(colour, seen):
                return any(sum(abs(a - b) for a, b in zip(colour, pixel)) < 90 for pixel in seen)

            inside = (alarms[0][0] + alarms[0][1] / 2) / 100
            holds(near(info, colours(inside)), f"no score in an alarm, dark {dark}")
            holds(not near(info, colours(middle)), f"a score where data is missing, dark {dark}")
            # The line is dashed.
            holds(any(near(critical, colours(inside + i / width)) for i in range(12)), f"no threshold, dark {dark}")
            for name, x in (("learned", 0.02), ("missing", middle), ("alarm", inside)):
                pixel = shot[int(top + height - 4)][int(left + width * x)]
                holds(sum(abs(a - b) for a, b in zip(pixel, plain)) > 12, f"{name} is {pixel} on {plain}, dark {dark}")

    def test_a_chart_is_found_by_a_screen_reader_and_fits_a_narrow_screen(self):
        self.open("nodes.html", width=360, height=700)
        holds(self.page.ask("document.documentElement.scrollWidth <= innerWidth"), "the page is too wide")
        self.page.picture(self.path("nodes-narrow.png"))
        tree = self.page.tree()
        images = [name for role, name in tree if role in ("image", "img")]
        holds(any(name.startswith("Score of 2000 rows") for name in images), f"images are called {images}")
        equal(self.count("th:not([scope])"), 0, "headers without scope")
        levels = self.page.ask("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
        holds(levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:])), f"headings {levels}")

    def test_names_of_nodes_and_metrics_that_attack_the_page_are_only_text(self):
        self.open("nodes-attacked.html")
        self.page.picture(self.path("nodes-attacked.png"))
        equal(self.count("script, img, base, iframe, object, embed, form, i, [onload], [onerror], [onmouseover]"), 0,
              "elements that nobody made")
        equal(self.page.ask("[...document.querySelectorAll('a')].every(a => /^#node-\\d+$/.test(a.getAttribute('href')))"),
              True, "links")
        equal(self.page.ask("document.title"), "NeuTracer: " + SEEN[1], "title")
        # The node with the highest score comes first.
        equal([row[0] for row in self.rows("section:first-of-type tbody tr")], SEEN[::-1], "nodes")
        equal([row[0] for row in self.rows("#node-1 .scroll:nth-of-type(1) tbody tr")], SEEN, "metrics")
        equal(self.page.ask("[...document.querySelectorAll('header .notes li')].map(l => l.textContent)"), SEEN, "notes")
        self.open("nodes.html")
        holds("<i>odd</i>" in self.text("article"), "a name from a file")
        equal(self.count("i"), 0, "elements of a name")

    def test_the_policy_of_the_page_of_nodes_forbids_all_scripts(self):
        self.open("nodes-attacked.html")
        self.page.ask("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.got = 1'}))")
        self.page.ask("document.body.setAttribute('style', 'color: red')")
        equal(self.page.ask("window.got"), None, "a script")
        holds(self.page.ask("getComputedStyle(document.body).color") != "rgb(255, 0, 0)", "a style")
        self.page.settle()
        holds(len([t for t in self.page.troubles if "Content Security Policy" in t]) >= 2,
              f"the browser says {self.page.troubles}")

    def test_the_largest_page_of_nodes_is_below_its_cap_and_opens(self):
        holds(os.path.getsize(self.path("nodes-worst.html")) <= 8 << 20, "the page is over 8 MiB")
        self.open("nodes-worst.html")
        equal(self.count("article"), 32, "nodes with a section")
        equal(self.count("figure"), 32, "charts")
        equal(len(self.rows("section:first-of-type tbody tr")), 512, "rows of nodes")
        body = self.page.ask("document.body.textContent")
        holds("512 more nodes" in body and "992 more nodes had an alarm" in body, "what is left out is not said")


def main():
    path = chromium.find()
    if not path:
        print("skip: browser: there is none of " + ", ".join(chromium.NAMES))
        return 77
    tests = [name for name in vars(Pages) if name.startswith("test_")]
    page = chromium.Browser(path)
    failed = 0
    print(f"1..{len(tests)}")
    try:
        for number, name in enumerate(tests, 1):
            try:
                getattr(Pages(page, sys.argv[1]), name)()
                print(f"ok {number} - {name[5:]}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
                print(f"not ok {number} - {name[5:]}: {error}", flush=True)
    finally:
        page.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
