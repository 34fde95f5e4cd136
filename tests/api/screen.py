# SPDX-License-Identifier: GPL-3.0-or-later
"""A program on a terminal: its keys, and what the screen shows, for the tests beside this file."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen:
    """Understands the sequences that the program uses; others are kept as text, to be noticed."""

    def __init__(self, words, environment, columns=80, rows=24):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(words[0], words, environment)
        self.before = termios.tcgetattr(self.fd)
        self.rows = [""] * 500
        self.row = 0
        self.output = b""
        self.rest = b""  # the begin of a sequence or character that is cut
        self.status = None

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _draw(self, text):
        for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", text):
            place = re.fullmatch(r"\x1b\[(\d+);1H", part)
            if place:
                self.row = int(place[1]) - 1
            elif part in ("\x1b[2J", "\x1b[?1049h"):
                self.rows = [""] * 500
            elif part == "\x1b[H":
                self.row = 0
            elif part == "\x1b[K":
                self.rows[self.row] = ""
            elif not re.fullmatch(r"\x1b\[([\d;]*m|\?25[lh]|\?1049l)", part):
                for line, text in enumerate(part.split("\r\n")):
                    self.row += line > 0
                    self.rows[self.row] += text

    def read(self, seconds):
        """False at the end of the output."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if ready:
            try:
                piece = os.read(self.fd, 1 << 20)
            except OSError:
                piece = b""
            if not piece:
                return False
            self.output += piece
            whole = self.rest + piece
            self.rest = re.search(rb"(\x1b[^A-Za-z]*|[\xc0-\xff][\x80-\xbf]*)?\Z", whole)[0]
            self._draw(whole[:len(whole) - len(self.rest)].decode(errors="replace"))
        return True

    def text(self):
        return "\n".join(self.rows).rstrip("\n")

    def await_text(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text(), re.M):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(f"no {pattern!r} in\n{self.text()}")
        return self.text()

    def await_end(self, seconds=60):
        """The wait status; what is printed until then is read."""
        end = time.monotonic() + seconds
        while self.status is None and time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        if self.status is None:
            raise AssertionError(f"it does not end:\n{self.text()}")
        while self.read(0) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.status

    def is_restored(self):
        """The other screen is left for good, the cursor is shown, and the modes are as before."""
        return (self.output.rfind(LEAVE) > self.output.rfind(ENTER) and
                self.output.rfind(b"\x1b[?25h") > self.output.rfind(b"\x1b[?25l") and
                termios.tcgetattr(self.fd) == self.before)

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
