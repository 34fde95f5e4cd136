#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""slow_clients.py URL [--ca FILE] [--token FILE] --ordinary PATH --seconds N PATH...

Attacks a server on this machine with slow clients: five addresses with 256 connections each, that
drip a header, drip a body, send nothing, and come again half a second after they were cut off.
Meanwhile each PATH is asked for. From an address of its own all must be answered with 200 within 5 s,
as the chart's probes want it, from those that attack 9 of 10, and 19 of 20 of all within 1 s. After
the attack --ordinary must be answered with 200, too.
"""
import argparse
import heapq
import multiprocessing
import os
import random
import resource
import selectors
import socket
import ssl
import sys
import time
import urllib.parse

ADDRESSES = [f"127.0.0.{i}" for i in range(1, 6)]
HONEST = "127.0.0.6"
EACH = 256
AGAIN_S = 0.5
PROBE_S = 5
KINDS = [b"GET / HTTP/1.1\r\nHost: t\r\nX-Slow: ",
         b"POST /api/v1/jobs/x/rebaseline HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n",
         None]


class Slow:
    """One connection, made anew whenever the server has had enough of it."""

    def __init__(self, attack, address, head):
        self.attack, self.address, self.head = attack, address, head
        self.socket = None

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((self.address, 0))
        self.socket.connect_ex(self.attack.peer)
        if self.attack.tls and self.head:
            self.socket = self.attack.tls.wrap_socket(
                self.socket, do_handshake_on_connect=False, server_hostname="127.0.0.1")
        self.sent = 0
        self.attack.opened += 1
        self.attack.selector.register(self.socket, selectors.EVENT_READ, self)
        self.attack.later(1, self.drip)

    def close(self):
        if self.socket:
            self.attack.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None
            self.attack.later(AGAIN_S, self.open)

    def drip(self):
        if not self.socket:
            return
        try:
            if self.head is not None:
                if self.attack.tls:
                    self.socket.do_handshake()
                self.socket.send(b"x" if self.sent else self.head)
                self.sent += 1
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.close()
            return
        self.attack.later(1, self.drip)

    def readable(self):
        try:
            if self.attack.tls and self.head and not self.sent:
                self.socket.do_handshake()
            elif not self.socket.recv(4096):
                self.close()
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self.close()


class Attack:
    def __init__(self, peer, tls):
        self.peer, self.tls = peer, tls
        self.selector = selectors.DefaultSelector()
        self.due, self.order, self.opened = [], 0, 0

    def later(self, seconds, what):
        self.order += 1
        heapq.heappush(self.due, (time.monotonic() + seconds, self.order, what))

    def run(self, stop, opened):
        slow = [Slow(self, address, KINDS[i % len(KINDS)])
                for i in range(EACH) for address in ADDRESSES]
        for one in slow:
            self.later(random.random() / 2, one.open)
        while not stop.is_set():
            for key, _ in self.selector.select(0.02):
                if key.data.socket:
                    key.data.readable()
            while self.due and self.due[0][0] <= time.monotonic():
                heapq.heappop(self.due)[2]()
            opened.value = self.opened


def attack(peer, ca, stop, opened):
    Attack(peer, client_context(ca)).run(stop, opened)


def client_context(ca):
    return ssl.create_default_context(cafile=ca) if ca else None


def ask(peer, tls, source, path, token):
    """The status, and after how many seconds it came. 0: there was none."""
    begun = time.monotonic()
    try:
        with socket.create_connection(peer, timeout=PROBE_S, source_address=(source, 0)) as plain:
            with tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain as stream:
                header = f"Authorization: Bearer {token}\r\n" if token else ""
                stream.sendall(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{header}\r\n"
                               .encode())
                answer = b""
                while len(answer) < 12:
                    more = stream.recv(4096)
                    if not more:
                        break
                    answer += more
        status = int(answer[9:12] or 0)
    except (OSError, ValueError):
        status = 0
    return status, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--ca")
    parser.add_argument("--token")
    parser.add_argument("--ordinary", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("path", nargs="+")
    arguments = parser.parse_args()
    url = urllib.parse.urlsplit(arguments.url)
    peer = (url.hostname, url.port)
    tls = client_context(arguments.ca)
    token = open(arguments.token).read().split()[0] if arguments.token else None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    for path in arguments.path + [arguments.ordinary]:
        status, _ = ask(peer, tls, HONEST, path, token)
        if status != 200:
            return f"{arguments.url}{path} is answered with {status} before the attack"
    stop, opened = multiprocessing.Event(), multiprocessing.Value("q", 0)
    attacker = multiprocessing.Process(target=attack, args=(peer, arguments.ca, stop, opened), daemon=True)
    attacker.start()
    end = time.monotonic() + arguments.seconds
    failed, beside, ordinary, took = [], 0, {}, []
    while time.monotonic() < end:
        time.sleep(0.2)
        for path in arguments.path:
            for source in (HONEST, random.choice(ADDRESSES)):
                status, seconds = ask(peer, tls, source, path, token)
                took.append(seconds)
                if status != 200 and source != HONEST:
                    beside += 1
                elif status != 200:
                    failed.append(f"{path} from {source}: {status or 'no answer'} after {seconds:.1f} s")
        status, _ = ask(peer, tls, HONEST, arguments.ordinary, token)
        ordinary[status] = ordinary.get(status, 0) + 1
    if not attacker.is_alive():
        return "the attack has ended before its time"
    stop.set()
    attacker.join()
    took.sort()
    late = sum(seconds > 1 for seconds in took)
    print(f"{arguments.url}: {opened.value} slow connections; {len(took)} probes: {len(failed)} not answered, "
          f"{beside} of those from addresses that attack, {late} after 1 s, slowest {took[-1]:.2f} s, median {took[len(took) // 2] * 1000:.0f} ms; "
          f"{arguments.ordinary} meanwhile: {ordinary}")
    if failed:
        return "; ".join(failed[:5])
    if beside * 20 > len(took):
        return f"{beside} of {len(took) // 2} probes from addresses that attack are not answered"
    if late * 20 > len(took):
        return f"{late} of {len(took)} probes took over 1 s"
    if opened.value < len(ADDRESSES) * EACH:
        return f"only {opened.value} slow connections were made"
    end = time.monotonic() + 30
    while ask(peer, tls, HONEST, arguments.ordinary, token)[0] != 200:
        if time.monotonic() > end:
            return f"{arguments.ordinary} is not answered 30 s after the attack"
        time.sleep(0.5)
    return 0


if __name__ == "__main__":
    os.environ.pop("SSL_CERT_FILE", None)
    sys.exit(main())
