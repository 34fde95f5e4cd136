#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what the API says of a job's ranks with what its ranks counted themselves.

    counts.py RANKS.json TRUTH_DIR [LAUNCHER_PID...] [--world-only OPERATION]

RANKS.json is the answer of /api/v1/jobs/ID/ranks. Calls and bytes of each rank, operation and
group must be equal, exactly; groups are told apart by size and place. No launcher may be a rank. --world-only
is for jobs whose framework makes calls of other operations by itself, in the group of all ranks.
"""
import collections
import json
import pathlib
import sys


def main():
    only = sys.argv[sys.argv.index("--world-only") + 1] if "--world-only" in sys.argv else None
    arguments = sys.argv[1 : sys.argv.index("--world-only")] if only else sys.argv[1:]
    seen = {rank["rank"]: rank for rank in json.load(open(arguments[0]))["items"]}
    truth = {}
    for path in sorted(pathlib.Path(arguments[1]).glob("rank-*.json")):
        rank = json.load(open(path))
        truth[rank["rank"]] = rank
    launchers = {int(pid) for pid in arguments[2:]}
    wrong = []
    if set(seen) != set(truth):
        wrong.append(f"ranks {sorted(seen)} were seen, {sorted(truth)} ran")
    calls = 0
    launched, launches = collections.Counter(), collections.Counter()  # by process
    for number, real in sorted(truth.items()):
        rank = seen.get(number)
        if rank is None:
            continue
        if not rank["rank_known"] or rank["pid"] != real["pid"]:
            wrong.append(f"rank {number} is process {rank['pid']}, was {real['pid']}")
        if rank["pid"] in launchers:
            wrong.append(f"rank {number} is the launcher")
        expected = sorted(
            (op["op"], op["size"], op["comm_rank"], op["calls"], op["bytes"]) for op in real["ops"]
        )
        got = sorted(
            (op["operation"], op["size"], op["rank"], op["calls"], op["bytes"])
            for op in rank["operations"]
            if op["calls"] and (only in (None, op["operation"]) or op["size"] != real["size"])
        )
        calls += sum(op[3] for op in expected)
        if got != expected:
            wrong.append(f"rank {number}:\n  counted itself {expected}\n  was seen with {got}")
        launched[real["pid"]] += real["launches"]
        launches[real["pid"]] += rank["launches"]
    wrong += [f"process {pid} launched {real} kernels, {launches[pid]} were seen"
              for pid, real in launched.items() if real and launches[pid] != real]
    for line in wrong:
        print(line)
    print(f"{len(truth)} ranks, {calls} calls: {'differ' if wrong else 'all equal'}")
    return 1 if wrong or not calls else 0


sys.exit(main())
