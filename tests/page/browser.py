# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium, driven over a pipe by its DevTools protocol: no driver, no port, no network."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page at a time; what goes wrong on it is collected in `troubles`, what it asks in `requests`."""

    def __init__(self, path):
        self.home = tempfile.mkdtemp(prefix="neutracer-browser-")
        to_child, self.output = os.pipe()
        self.input, from_child = os.pipe()

        def place():
            # The browser reads commands from descriptor 3 and answers on 4.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_child, from_child)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.child = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--disable-background-networking", "--no-first-run",
             f"--user-data-dir={self.home}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.rest, self.last, self.events = b"", 0, []
        self.requests, self.troubles = [], []
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.call(domain + ".enable")

    session = None

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.output)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(5)
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.input)
        shutil.rmtree(self.home, ignore_errors=True)

    def receive(self, until):
        """The next message before the time, or None."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.input], [], [], max(0, until - time.monotonic()))
            if not ready:
                return None
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        name, told = event["method"], event.get("params", {})
        if name == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif name == "Runtime.exceptionThrown":
            self.troubles.append(str(told["exceptionDetails"])[:300])
        elif name == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.troubles.append(str(told["args"])[:300])
        elif name == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.troubles.append(told["entry"]["text"])
        elif name == "Page.javascriptDialogOpening":
            self.troubles.append("a dialog opens: " + told["message"])
        self.events.append(name)

    def call(self, method, params=None, timeout=60):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + timeout
        while True:
            answer = self.receive(until)
            if answer is None:
                raise RuntimeError(f"{method}: no answer in {timeout} s")
            if "method" in answer:
                self.note(answer)
            elif answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, width=1200, height=900, dark=False, script=True):
        """Opens a file or an address and waits until it is loaded. Returns the seconds that it took."""
        self.requests, self.troubles, self.events = [], [], []
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia",
                  {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.call("Emulation.setScriptExecutionDisabled", {"value": not script})
        start = time.monotonic()
        self.call("Page.navigate", {"url": path if "://" in path else "file://" + os.path.abspath(path)})
        until = start + 60
        while "Page.loadEventFired" not in self.events:
            event = self.receive(until)
            if event is None:
                raise RuntimeError(f"{path}: not loaded in 60 s")
            if "method" in event:
                self.note(event)
        took = time.monotonic() - start
        self.settle()
        return took

    def settle(self):
        """Two frames have been drawn; what the page says about them has come."""
        for _ in range(2):
            self.call("Page.captureScreenshot", {"format": "jpeg", "quality": 1})

    def ask(self, expression):
        """The value of an expression on the page; the browser's own, so that it needs no script there."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def point(self, x, y):
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def press(self, key):
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key,
                                                 "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13, "PageDown": 34, "End": 35, "Home": 36,
                                                                           "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                                                                           "ArrowDown": 40}.get(key, 0),
                                                 **(text if kind == "keyDown" else {})})

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    def until(self, expression, timeout=20):
        """Waits until the expression is true on the page, and takes what the page says meanwhile."""
        end = time.monotonic() + timeout
        while not self.ask(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"not in {timeout} s: {expression}; the page: {self.ask('document.body.innerText')[:600]}")
            time.sleep(0.05)

    def picture(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        image = self.call("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}})
        with open(path, "wb") as file:
            file.write(base64.b64decode(image["data"]))

    def tree(self):
        """What a screen reader is told: (role, name) of every node that it does not pass over."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", ""))
                for node in nodes if not node.get("ignored") and "role" in node]
