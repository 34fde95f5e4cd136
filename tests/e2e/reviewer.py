#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the TokenReview of an API server: reviewer.py PORT-FILE TOKEN NODE knows one token."""
import http.server
import json
import sys

AGENT = "system:serviceaccount:neutracer:neutracer-agent"


class Reviewer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        spec = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["spec"]
        status = {"authenticated": False}
        if spec["token"] == sys.argv[2]:
            extra = {"authentication.kubernetes.io/node-name": [sys.argv[3]]}
            status = {"authenticated": True, "audiences": spec["audiences"], "user": {"username": AGENT, "extra": extra}}
        body = json.dumps({"kind": "TokenReview", "status": status}).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Reviewer)
with open(sys.argv[1], "w", encoding="ascii") as file:
    print(server.server_port, file=file)
server.serve_forever()
