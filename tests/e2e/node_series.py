#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the node vectors of a spool as bytes: no code of this project decodes anything here.

    node_series.py names DIR              names of all metrics
    node_series.py last|first DIR METRIC  its value in the newest or oldest vector; 0 is not on the wire
    node_series.py has DIR TEXT           whether a text field has this content
"""
import glob
import re
import struct
import sys


def read(directory):
    data = b''
    for path in sorted(glob.glob(f'{directory}/neutracer.node.v1/*/*.seg')):
        with open(path, 'rb') as file:
            data += file.read()
    return data


def series(data, name):
    """Metric: field 1 is the name, field 2 a double (tag 0x11), which is left out if it is 0."""
    text = name.encode()
    head = re.escape(b'\x0a' + bytes([len(text)]) + text)
    return [struct.unpack('<d', found[1])[0] if found[1] else 0.0
            for found in re.finditer(head + rb'(?:\x11(.{8}))?', data, re.DOTALL)]


def main():
    what, directory = sys.argv[1:3]
    data = read(directory)
    if what == 'names':
        found = re.finditer(rb'\x0a(.)([a-z][a-z0-9_]*)', data, re.DOTALL)
        names = {match[2][:match[1][0]].decode() for match in found if len(match[2]) >= match[1][0]}
        print('\n'.join(sorted(names)))
    elif what == 'has':
        text = sys.argv[3].encode()
        sys.exit(0 if bytes([len(text)]) + text in data else 1)
    else:
        values = series(data, sys.argv[3])
        if values:
            print(values[-1 if what == 'last' else 0])


main()
