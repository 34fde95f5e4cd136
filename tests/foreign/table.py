# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a table of operation times as ByteDance's StragglerAnalysis publishes them.

Only operations of the device are in it, of the leader of each tensor group. Times count from the begin
of the step, which is that of the first operation of any rank. Sends and receives of one call have its time.
"""
import gzip
import os

HEADER = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"


def spans(rank):
    """(step, tag, start, end) of each operation; the layers of a computation are one."""
    open_tags = {}
    for op in rank.ops:
        if not op.label:
            continue
        for tag in op.label.get("tags") or [op.label] if "optype" in op.label or "tags" in op.label else ():
            key = (op.step, tag["optype"], tag["seq_id"])
            start = tag["mark"].end if "mark" in tag else op.start
            if key in open_tags:
                open_tags[key][3] = op.end
            else:
                open_tags[key] = [op.step, tag, start, op.end]
    return open_tags.values()


def write(ranks, truth, directory):
    job = truth.job
    base = [float("inf")] * job.steps
    found = {rank.number: list(spans(rank)) for rank in ranks}
    for rows in found.values():
        for step, _, start, _ in rows:
            base[step] = min(base[step], start)
    rng = job.stream("table")
    numbers, number = [], 16
    for _ in range(job.steps):
        numbers.append(number)
        number += 1 if rng.random() < 0.9 else rng.randint(2, 40)
    path = os.path.join(directory, f"trace-J{job.seed}.csv.gz")
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.write(HEADER)
        for rank, rows in found.items():
            _, d, p = job.place(rank)
            shift = job.clock[job.node(rank)] + max(0.0, -min(job.clock))
            if rank == job.lost:
                continue
            for step, tag, start, end in sorted(rows, key=lambda row: (row[0], row[1]["optype"], row[1]["seq_id"])):
                if job.cut and rank == job.cut[0] and step >= job.cut[1]:
                    continue
                chunk = tag["mc"] if tag["mc"] >= 0 else 0 if tag["optype"] in ("grads-reduce-scatter", "params-all-gather") else -1
                where = p if tag["mc"] >= 0 else -1
                out.write(f"{d},{p},{rank * job.hidden_tp},{numbers[step]},{tag['optype']},{start - base[step] + shift:.6f},"
                          f"{end - start:.6f},{tag['seq_id']},{chunk},{tag['mb']},{where}\n")
    # The reader sees the steps one after the other.
    lengths = [0.0] * job.steps
    for rows in found.values():
        for step, _, _, end in rows:
            lengths[step] = max(lengths[step], end - base[step])
    clock, now = [], 0.0
    for length in lengths:
        now += length
        clock.append(now)
    return path, clock
