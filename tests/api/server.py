# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the REST interface over its invented snapshot, for the tests beside this file."""
import os
import pathlib
import subprocess

PROGRAM = os.environ.get("NT_API_SERVER", "build/release/test/api-server")


class Server:
    def __init__(self, directory, *arguments, **environment):
        self.directory = pathlib.Path(directory)
        self.process = subprocess.Popen(
            [PROGRAM, str(directory), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, **environment})
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{PROGRAM} ended with {self.process.wait()}")
        self.port = int(line)

    @property
    def token(self):
        return (self.directory / "token").read_text().split()[0]

    def put(self, state, incident):
        """True when the incident is in the store, False where the server has ended."""
        try:
            self.process.stdin.write(f"{state} {incident}\n")
            return self.process.stdout.readline() == f"{state} {incident}\n"
        except BrokenPipeError:
            return False

    def kill(self):
        self.process.kill()
        self._reap()

    def stop(self):
        """Asks it to end, and fails where that is no success."""
        self.process.stdin.close()
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        if status:
            raise SystemExit(f"{PROGRAM} ended with {status}")

    def _reap(self):
        self.process.wait()
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
