#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Becomes a program under the system call filter of a systemd unit, without systemd.

    confined.py UNIT PROGRAM ARG...

The unit's SystemCallFilter=, expanded as systemd itself does (systemd-analyze syscall-filter), line by line, and
MemoryDenyWriteExecute=. A call that a line takes away (~) fails with EPERM, as it does under the unit. One that
no line names ends the program (SIGSYS) instead of failing, so that none goes unnoticed.
"""
import ctypes
import errno
import os
import subprocess
import sys

ALLOW, KILL_PROCESS, FAIL = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
MASKED_EQUAL = 7
PROT_WRITE, PROT_EXEC = 2, 4


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def settings(path):
    with open(path, encoding="utf-8") as unit:
        lines = [line.strip().split("=", 1) for line in unit if "=" in line and not line.startswith("#")]
    return dict(lines), [value.split() for key, value in lines if key == "SystemCallFilter"]


def expand(names):
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        shown = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        calls |= expand(line.strip() for line in shown[1:] if line.strip() and "#" not in line)
    return calls


def filters(lines):
    """The calls that the lines allow in the end, and those that they take away."""
    allowed, denied = set(), set()
    for names in lines:
        if names[0].startswith("~"):
            calls = expand([names[0][1:], *names[1:]])
            allowed, denied = allowed - calls, denied | calls
        else:
            calls = expand(names)
            allowed, denied = allowed | calls, denied - calls
    return allowed, denied


def confine(calls, denied, denies_writable_code):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))

    def rule(action, number, *compares):
        if library.seccomp_rule_add(
            context, ctypes.c_uint32(action), ctypes.c_int(number), ctypes.c_uint(len(compares)), *compares
        ):
            sys.exit(f"confined.py: no rule for call {number}")

    def allow(number, *compares):
        rule(ALLOW, number, *compares)

    for name in sorted(calls | denied):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            continue  # not on this machine
        if name in denied:
            rule(FAIL, number)
            continue
        if denies_writable_code and name in ("mmap", "mprotect", "pkey_mprotect"):
            unwanted = PROT_EXEC | (PROT_WRITE if name == "mmap" else 0)
            for value in range(unwanted + 1):
                if value & ~unwanted == 0 and value != unwanted:
                    allow(number, Compare(2, MASKED_EQUAL, unwanted, value))
            continue
        allow(number)
    if library.seccomp_load(context):
        sys.exit("confined.py: the filter is not taken")


def main():
    unit, lines = settings(sys.argv[1])
    # The calls of this program itself until it is the other one.
    confine(*filters(lines), unit.get("MemoryDenyWriteExecute") == "yes")
    os.execv(sys.argv[2], sys.argv[2:])


main()
