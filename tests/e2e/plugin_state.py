#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libneutracer-cupti.so in processes holds: plugin_state.py LIBRARY PID...

Prints "PID SEMAPHORE NUMBER" for each: how many tracers are attached, and the number of the last record."""
import subprocess
import sys


def symbols(library):
    out = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in out.splitlines()]
    found = {name: [int(address, 16) for address, kind, other in (line for line in lines if len(line) == 3)
                    if other == name and kind.lower() in "bd"]
             for name in ("neutracer_gpu_records_semaphore", "number")}
    for name, addresses in found.items():
        if len(addresses) != 1:
            sys.exit(f"{library} has the variable {name} {len(addresses)} times")
    return found["neutracer_gpu_records_semaphore"][0], found["number"][0]


def base(pid, library):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            if line.rstrip().endswith(library.split("/")[-1]) and line.split()[2] == "00000000":
                return int(line.split("-")[0], 16)
    sys.exit(f"process {pid} has not mapped {library}")


def main():
    library = sys.argv[1]
    semaphore, number = symbols(library)
    for pid in sys.argv[2:]:
        start = base(pid, library)
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            def value(at, size):
                memory.seek(start + at)
                return int.from_bytes(memory.read(size), "little")
            print(pid, value(semaphore, 2), value(number, 8))


main()
