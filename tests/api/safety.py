#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of clients, sessions, new tokens and the audit log, with curl and certificates of openssl."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from server import Server

REBASELINE = "/api/v1/jobs/00000000000000a1/rebaseline"


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def key_of(name):
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}-key.pem"]


def authority(directory, name):
    openssl(directory, "req", "-x509", *key_of(name), "-days", "2", "-subj", f"/CN={name}", "-out", f"{name}.pem")


def certificate(directory, name, signer, purpose, *more, subject=None):
    (directory / "extensions").write_text(
        f"subjectAltName=IP:127.0.0.1\nextendedKeyUsage={purpose}\nbasicConstraints=CA:FALSE\n")
    openssl(directory, "req", *key_of(name), "-subj", subject or f"/CN={name}", "-out", f"{name}.csr")
    openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{signer}.pem", "-CAkey", f"{signer}-key.pem",
            "-CAcreateserial", "-extfile", "extensions", "-out", f"{name}.pem", *(more or ("-days", "2")))


def make_certificates(directory):
    authority(directory, "ca")
    authority(directory, "other-ca")
    certificate(directory, "cert", "ca", "serverAuth")
    certificate(directory, "right", "ca", "clientAuth", subject="/CN=ri'gh\"t")
    certificate(directory, "wrong-authority", "other-ca", "clientAuth")
    certificate(directory, "wrong-purpose", "ca", "serverAuth")
    certificate(directory, "expired", "ca", "clientAuth", "-days", "-1")
    openssl(directory, "req", "-x509", *key_of("own"), "-days", "2", "-subj", "/CN=own", "-out", "own.pem")
    (directory / "cert-key.pem").rename(directory / "key.pem")
    (directory / "client-ca.pem").write_bytes((directory / "ca.pem").read_bytes())


def curl(server, path, *arguments, client=None):
    """The status and the text of a response; status 0 where the handshake fails."""
    certificates = ["--cert", f"{client}.pem", "--key", f"{client}-key.pem"] if client else []
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "20", "--cacert", "ca.pem", "-D", "head", "-w", "\n%{http_code}",
         *certificates, *arguments, f"https://127.0.0.1:{server.port}{path}"],
        cwd=server.directory, capture_output=True, text=True)
    text, _, status = done.stdout.rpartition("\n")
    return int(status or 0), text


def expect(got, status, words=""):
    if got[0] != status or words not in got[1]:
        raise SystemExit(f"expected {status} {words}, got {got}")


def bearer(token):
    return ("-H", f"Authorization: Bearer {token}")


def check_certificates(server):
    token = bearer(server.token)
    expect(curl(server, "/api/v1/jobs", *token, client="right"), 200, "items")
    expect(curl(server, "/api/v1/jobs", client="right"), 401, "no_token")
    expect(curl(server, "/api/v1/jobs", *token), 403, "requires a client certificate")
    expect(curl(server, "/api/v1/jobs", *token, client="wrong-authority"), 403, "not signed by an accepted authority")
    expect(curl(server, "/api/v1/jobs", *token, client="own"), 403, "not signed by an accepted authority")
    expect(curl(server, "/api/v1/jobs", *token, client="wrong-purpose"), 403, "not for clients")
    expect(curl(server, "/api/v1/jobs", *token, client="expired"), 403, "has expired")
    expect(curl(server, REBASELINE, *token, "-X", "POST"), 403, "client_certificate")
    expect(curl(server, "/healthz"), 200, "ok")
    expect(curl(server, "/healthz", client="wrong-authority"), 200, "ok")


def check_command(server):
    """The command presents a certificate, and names the options where one is missing."""
    program = os.environ.get("NT_COMMAND", "build/release/bin/neutracer")
    asked = [program, "jobs", "--server", f"https://127.0.0.1:{server.port}", "--token-file",
             server.directory / "token", "--ca-file", server.directory / "ca.pem"]
    right = ["--cert-file", server.directory / "right.pem", "--key-file", server.directory / "right-key.pem"]
    subprocess.run([*asked, *right], check=True, capture_output=True)
    refused = subprocess.run(asked, capture_output=True, text=True)
    if refused.returncode == 0 or "--cert-file" not in refused.stderr:
        raise SystemExit(f"without a certificate the command printed: {refused.stderr}")


def check_session(server):
    asked = ("-c", "jar", "-b", "jar")
    began = curl(server, "/api/v1/session", *asked, *bearer(server.token), "-X", "POST", client="right")
    expect(began, 200, '"scope":"admin"')
    head = (server.directory / "head").read_text()
    if "; HttpOnly; SameSite=Strict; Secure\n" not in head.replace("\r", ""):
        raise SystemExit(f"the cookie lacks an attribute: {head}")
    csrf = json.loads(began[1])["csrf"]
    expect(curl(server, "/api/v1/jobs", *asked, client="right"), 200)
    expect(curl(server, "/api/v1/jobs", *asked), 403, "client_certificate")
    expect(curl(server, "/api/v1/session", *asked, client="right"), 200, csrf)
    expect(curl(server, REBASELINE, *asked, "-X", "POST", client="right"), 403, "csrf")
    write = (*asked, "-X", "POST", "-H", f"X-CSRF-Token: {csrf}")
    expect(curl(server, REBASELINE, *write, "-H", "Origin: http://127.0.0.1:1", client="right"), 403, "cross_site")
    expect(curl(server, REBASELINE, *write, "-H", f"Origin: http://127.0.0.1:{server.port}", client="right"), 403,
           "cross_site")
    expect(curl(server, REBASELINE, *write, "-H", f"Origin: https://127.0.0.1:{server.port}", client="right"), 202)
    return asked


def end_session(server, jar="other-jar"):
    """Where it was ended, the cookie is gone from the client, and is not accepted from a copy."""
    asked = ("-c", jar, "-b", jar)
    began = curl(server, "/api/v1/session", *asked, *bearer(server.token), "-X", "POST", client="right")
    copy = ("-H", f"Cookie: neutracer_session={(server.directory / jar).read_text().split()[-1]}")
    expect(curl(server, "/api/v1/jobs", *copy, client="right"), 200)
    csrf = ("-H", f"X-CSRF-Token: {json.loads(began[1])['csrf']}")
    expect(curl(server, "/api/v1/session", *asked, *csrf, "-X", "DELETE", client="right"), 204)
    if "neutracer_session" in (server.directory / jar).read_text():
        raise SystemExit("curl keeps the cookie of an ended session")
    expect(curl(server, "/api/v1/jobs", *copy, client="right"), 401, "invalid_token")


def change_tokens(server, session):
    """A broken file changes nothing; a new one takes effect, and ends the session of a removed token."""
    old, path = server.token, server.directory / "token"
    path.write_text("short\n")
    time.sleep(1.1)
    expect(curl(server, "/api/v1/jobs", *bearer(old), client="right"), 200)
    path.write_text("a-new-token-0123456789 admin alice\na-reading-token-0123456789 read bob\n")
    time.sleep(1.1)
    expect(curl(server, "/api/v1/jobs", *bearer(old), client="right"), 401, "invalid_token")
    expect(curl(server, "/api/v1/jobs", *session, client="right"), 401, "invalid_token")
    expect(curl(server, REBASELINE, *bearer("a-reading-token-0123456789"), "-X", "POST", client="right"), 403,
           "scope_read")
    expect(curl(server, REBASELINE, *bearer("a-new-token-0123456789"), "-X", "POST", client="right"), 202)
    return old


def check_audit(server, secrets):
    got = curl(server, "/api/v1/audit", *bearer("a-new-token-0123456789"), client="right")
    expect(got, 200)
    for secret in secrets:
        if secret in got[1]:
            raise SystemExit(f"the audit log holds a secret: {got[1]}")
    newest = [(entry["token"], entry["by_cookie"], entry["status"]) for entry in json.loads(got[1])["items"]]
    wanted = [("alice", False, 202), ("bob", False, 403), ("line 1", True, 202), ("line 1", True, 403),
              ("line 1", True, 403), ("line 1", True, 403), ("line 1", False, 200), ("line 1", True, 204), ("line 1", False, 200),
              (None, False, 403)]
    certificates = {entry["certificate"] for entry in json.loads(got[1])["items"]}
    if newest != wanted or certificates != {"ri?gh??t", None}:
        raise SystemExit(f"the audit log has {newest} of {certificates}")


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        make_certificates(directory)
        with Server(directory) as server:
            check_certificates(server)
            check_command(server)
            end_session(server)
            secrets = [change_tokens(server, check_session(server)), "a-new-token", "a-reading-token"]
            check_audit(server, secrets)
            server.kill()
        with Server(directory) as server:
            check_audit(server, secrets)
            server.stop()


if __name__ == "__main__":
    main()
