#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts what arrived on a topic by its sequence numbers, with nothing of the project's own.

    sequences.py KILLED_MS < DUMP

DUMP is what `kcat -C -e -f '%R%s'` prints: for each message its size, 4 bytes, and its bytes. Only the
envelope is looked at: who sent it (1), boot (2), number (3), real time (5), key (7). Within an agent, a boot
and a key numbers go from 1 on without a gap. Of a sender that was killed at KILLED_MS (0: none was) the
end may be missing; the last of it that is there may not be older than three seconds then.
"""
import struct
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def envelope(data):
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            value, at = data[at : at + 4], at + 4
        fields.setdefault(tag >> 3, value)
    return fields


def main():
    killed_ms, dump, at = int(sys.argv[1]), sys.stdin.buffer.read(), 0
    streams, newest, total = {}, {}, 0
    while at < len(dump):
        (size,) = struct.unpack_from(">i", dump, at)
        fields = envelope(dump[at + 4 : at + 4 + size])
        at += 4 + size
        total += 1
        stream = (fields[1], fields[2], fields.get(7, b""))
        streams.setdefault(stream, []).append(fields[3])
        newest[fields[2]] = max(newest.get(fields[2], 0), fields[5] // 1000000)
    missing = twice = 0
    for (agent, boot, key), numbers in sorted(streams.items()):
        distinct = set(numbers)
        gaps = max(distinct) - len(distinct)
        missing += gaps
        twice += len(numbers) - len(distinct)
        print(f"{agent.decode()} {boot.hex()} {key.decode()}: {len(distinct)} of {max(distinct)}")
    ended_ms = min(newest.values(), default=0)
    print(f"{total} messages, {missing} missing, {twice} twice")
    if killed_ms and (len(newest) < 2 or ended_ms < killed_ms - 3000):
        print(f"of the one killed nothing is there after {ended_ms - killed_ms} ms")
        return 1
    return 1 if missing or not streams else 0


sys.exit(main())
