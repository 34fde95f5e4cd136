#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes webhooks: writes each body as one line to a file.

    receiver.py PORT_FILE MESSAGES [FAILURES [ADDRESS:PORT]]

PORT_FILE gets the port. The first FAILURES requests are answered with 503, to be sent again. Without
ADDRESS:PORT it listens on some port of the loopback address.
"""
import http.server
import json
import pathlib
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    failures = int(sys.argv[3]) if len(sys.argv) > 3 else 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if Handler.failures > 0:
            Handler.failures -= 1
            self.send_response(503)
        else:
            with open(sys.argv[2], "a") as messages:
                messages.write(json.dumps(json.loads(body)) + "\n")
            self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


address, _, port = (sys.argv[4] if len(sys.argv) > 4 else "127.0.0.1:0").rpartition(":")
server = http.server.ThreadingHTTPServer((address, int(port)), Handler)
pathlib.Path(sys.argv[2]).touch()
pathlib.Path(sys.argv[1]).write_text(str(server.server_address[1]))
server.serve_forever()
