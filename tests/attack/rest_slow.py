#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow clients of an HTTP server: they send a byte of a header now and then, and come again.

    rest_slow.py PORT [ADDRESSES] [CONNECTIONS] [SECONDS]      (5 addresses, 256 connections of each, 20 s)

Clients come from 127.0.0.2 and on. Prints "connected N" once all have tried, and "refused N" at the end:
connections that the server closed.
"""
import select
import socket
import sys
import time

port = int(sys.argv[1])
addresses, per_address, seconds = ([int(a) for a in sys.argv[2:]] + [5, 256, 20][len(sys.argv) - 2:])[:3]
HEADER = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-Slow: yes\r\n" * 1000
clients = {}
refused = 0


def connect(address):
    client = socket.socket()
    client.setblocking(False)
    client.bind((f"127.0.0.{2 + address}", 0))
    try:
        client.connect(("127.0.0.1", port))
    except BlockingIOError:
        pass
    clients[client] = [address, 0]


for nth in range(per_address):
    for address in range(addresses):
        connect(address)
print("connected", len(clients), flush=True)
end = time.monotonic() + seconds
while time.monotonic() < end:
    time.sleep(0.5)
    poll = select.poll()
    for client in clients:
        poll.register(client, select.POLLIN | select.POLLOUT)
    numbers = {client.fileno(): client for client in clients}
    for number, what in poll.poll(0):
        client = numbers[number]
        try:
            if what & (select.POLLIN | select.POLLHUP | select.POLLERR) and not client.recv(4096):
                raise ConnectionResetError
            at = clients[client][1]
            clients[client][1] += client.send(HEADER[at:at + 1])
        except BlockingIOError:
            pass
        except OSError:
            refused += 1
            address = clients.pop(client)[0]
            client.close()
            connect(address)
print("refused", refused, flush=True)
