#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes dumps of PyTorch's flight recorder, of a job of which rank 5 does not enter the last call.

    bench/flight.py DIR [--ranks N] [--calls N] [--json]
"""
import argparse
import json
import os
import pickle

BASE_NS = 1790857026000000000
STACK = [{"name": f"forward_{i}", "filename": f"/usr/lib/python3/dist-packages/torch/nn/modules/module_{i}.py", "line": 100 + i}
         for i in range(20)]


def groups_of(rank, ranks):
    """Of all ranks, of eight in a row, and of every eighth."""
    first = rank // 8 * 8
    return [("0", "default_pg", range(ranks)), (str(1 + rank // 8), "tp", range(first, min(first + 8, ranks))),
            (str(1000 + rank % 8), "dp", range(rank % 8, ranks, 8))]


def dump_of(rank, ranks, calls):
    groups = groups_of(rank, ranks)
    entries = []
    for i in range(calls - (rank == 5)):
        name, description, _ = groups[i % 3]
        start, done = BASE_NS + i * 1000000, i < calls - 1
        entries.append({
            "record_id": i, "pg_id": i % 3, "process_group": (name, description), "collective_seq_id": i // 3 + 1, "p2p_seq_id": 0,
            "op_id": i // 3 + 1, "profiling_name": "nccl:all_reduce", "time_created_ns": start, "input_sizes": [[4096, 4096]],
            "input_dtypes": ["BFloat16"], "output_sizes": [[4096, 4096]], "output_dtypes": ["BFloat16"],
            "state": "completed" if done else "scheduled", "time_discovered_started_ns": start + 5 if done else None,
            "time_discovered_completed_ns": start + 500 if done else None, "retired": done, "timeout_ms": 600000,
            "is_p2p": False, "frames": STACK})
    config = {name: {"name": name, "desc": description, "ranks": str(list(members))} for name, description, members in groups}
    return {"version": "2.4", "pg_config": config, "pg_status": {}, "entries": entries}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir")
    parser.add_argument("--ranks", type=int, default=128)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.makedirs(arguments.dir, exist_ok=True)
    for rank in range(arguments.ranks):
        path = os.path.join(arguments.dir, f"nccl_trace_rank_{rank}" + (".json" if arguments.json else ""))
        content = dump_of(rank, arguments.ranks, arguments.calls)
        with open(path, "wb") as out:
            out.write(json.dumps(content).encode() if arguments.json else pickle.dumps(content, 2))


if __name__ == "__main__":
    main()
