#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what sysTrace would have written of a job: one hccl_activity-IP-.RANK.csv a rank.

The job is played call by call. A collective ends on all its ranks when the last of them has come and
the bytes are over, so that a slow rank has the shortest operations and its victims the longest.
Seeded: the same arguments give the same bytes.
"""
import argparse
import os
import random

HEADER = (
    "Flag,Id,Kind,Name,SourceKind,Timestamp,msptiObjectId_Ds_DeviceId,"
    "msptiObjectId_Ds_StreamId,msptiObjectId_Pt_ProcessId,msptiObjectId_Pt_ThreadId"
)
MS = 1000000
START = 1749084000 * 1000 * MS
RUN_AHEAD = 2  # calls that the host is ahead of the device


def fault(text):
    """RANK:FACTOR[:FROM[:KIND]]: from which step on; "device" or "host"."""
    parts = text.split(":") + ["0", "device"][max(0, text.count(":") - 1) :]
    return int(parts[0]), float(parts[1]), int(parts[2]), parts[3]


def change(text):
    """FACTOR:FROM."""
    factor, begin = text.split(":")
    return float(factor), int(begin)


class Rank:
    def __init__(self, number, args):
        self.number = number
        self.device = self.host = START
        self.ends = [START] * RUN_AHEAD
        self.calls = 0
        self.random = random.Random(args.seed * 100003 + number)
        self.skew = int(self.random.uniform(-args.skew, args.skew) * MS)
        self.rows = []

    def row(self, name, source, time):
        flag = 16 if name else 32
        self.rows.append(f"{flag},{self.calls},1,{name},{source},{time + self.skew},0,0,1,1")

    def record(self, name, launch, start, end):
        self.calls += 1
        self.row(name, 0, launch)
        self.row("", 0, launch + 20000)
        self.row(name, 1, start)
        self.row("", 1, end)
        self.device = end
        self.ends = self.ends[1:] + [end]


class Job:
    def __init__(self, args):
        self.args = args
        self.ranks = [Rank(number, args) for number in range(args.ranks)]
        self.step = 0

    def node(self, rank):
        return rank.number // self.args.node

    def work(self, rank, ms):
        """Computes for so long on the device, which the host launches in half the time."""
        args = self.args
        # Only ever longer, as computing is.
        device = ms * (1 + abs(rank.random.gauss(0, args.jitter)))
        host = ms / 2
        if rank.random.random() < args.hiccups:
            device *= 3
        for number, factor, begin, kind in args.slow:
            if number == rank.number and self.step >= begin:
                host = device * factor if kind == "host" else host
                device = device if kind == "host" else device * factor
        if args.slow_node and self.node(rank) == args.slow_node[0] and self.step >= args.slow_node[2]:
            device *= args.slow_node[1]
        if args.slow_job and self.step >= args.slow_job[1]:
            device *= args.slow_job[0]
        # The host is ahead, but only so far.
        rank.host = max(rank.host, rank.ends[0]) + int(host * MS)
        rank.device = max(rank.device + int(device * MS), rank.host + 50000)

    def together(self, ranks, op, group, count, ms=3):
        """One operation of all these ranks."""
        args = self.args
        spans = len({self.node(rank) for rank in ranks}) > 1
        for number, factor, begin, _ in args.nic:
            if spans and self.step >= begin and any(rank.number == number for rank in ranks):
                ms *= factor
        end = max(rank.device for rank in ranks) + int(ms * MS * (1 + abs(ranks[0].random.gauss(0, 0.02))))
        for rank in ranks:
            rank.record(f"comm:{op}!{group}!fp16!{count}", rank.host, rank.device, end)

    def layers(self, groups, name):
        args = self.args
        for _ in range(args.layers):
            for ms, op in ((args.work, "HcclAllGather"), (2 * args.work, "HcclReduceScatter")):
                for i, group in enumerate(groups):
                    for rank in group:
                        self.work(rank, ms)
                    self.together(group, op, f"{name}_{i}", 1 << 20)

    def reduce(self, groups, name, ms):
        for i, group in enumerate(groups):
            for rank in group:
                self.work(rank, ms)
            self.together(group, "HcclAllReduce", f"{name}_{i}", 1 << 24, 20)

    def pipeline(self, stages):
        """Micro-batches pass from stage to stage; stages[s] are the tensor groups of stage s."""
        for _ in range(self.args.micro):
            for s, groups in enumerate(stages):
                for i, group in enumerate(groups):
                    if s:
                        for left, right in zip(stages[s - 1][i], group):
                            self.together((left, right), "HcclBatchSendRecv", f"pp_{i}_{left.number % len(group)}", 1 << 18, 1)
                    for rank in group:
                        self.work(rank, self.args.work)
                    self.together(group, "HcclAllGather", f"tp_{s}_{i}", 1 << 20)

    def play(self):
        args, ranks = self.args, self.ranks
        tensor = [ranks[i : i + args.tp] for i in range(0, args.ranks, args.tp)]
        per_stage = len(tensor) // args.pp
        stages = [tensor[s * per_stage : (s + 1) * per_stage] for s in range(args.pp)]
        data = [list(column) for stage in stages for column in zip(*stage)]
        for self.step in range(args.steps):
            if args.layout == "fsdp":
                self.layers([ranks], "world")
            elif args.layout == "ddp":
                self.reduce([ranks], "world", 13 * args.work)
            elif args.pp > 1:
                self.pipeline(stages)
                self.reduce(data, "dp", 2 * args.work)
            else:
                self.layers(tensor, "tp")
                if len(tensor) > 1:
                    self.reduce(data, "dp", 10 * args.work)
            if args.step_sync:
                self.together(ranks, "HcclAllReduce", "sync", 1, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--layout", choices=("tp", "fsdp", "ddp"), default="tp")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--tp", type=int, default=8)
    parser.add_argument("--pp", type=int, default=1)
    parser.add_argument("--micro", type=int, default=4, help="micro-batches of a step")
    parser.add_argument("--node", type=int, default=8, help="ranks of a node")
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--work", type=float, default=40, help="ms, the shortest between two calls")
    parser.add_argument("--jitter", type=float, default=0.02)
    parser.add_argument("--hiccups", type=float, default=0, help="share of phases that take three times as long")
    parser.add_argument("--skew", type=float, default=2, help="clocks differ by up to so many ms")
    parser.add_argument("--no-step-sync", dest="step_sync", action="store_false")
    parser.add_argument("--slow", type=fault, action="append", default=[], help="RANK:FACTOR[:FROM[:KIND]], from step FROM on; KIND is device or host")
    parser.add_argument("--slow-node", type=lambda text: fault(text)[:3], help="NODE:FACTOR[:FROM]")
    parser.add_argument("--slow-job", type=change, help="FACTOR:FROM")
    parser.add_argument("--nic", type=fault, action="append", default=[], help="RANK:FACTOR[:FROM]: its transfers between nodes")
    parser.add_argument("--empty", type=int, action="append", default=[], help="ranks without data")
    parser.add_argument("--missing", type=int, action="append", default=[], help="ranks without a file")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    job = Job(args)
    job.play()
    os.makedirs(args.directory, exist_ok=True)
    for rank in job.ranks:
        if rank.number in args.missing:
            continue
        name = f"hccl_activity-10.0.0.{job.node(rank) + 1}-.{rank.number}.csv"
        with open(os.path.join(args.directory, name), "w", encoding="ascii") as file:
            lines = [HEADER] if rank.number in args.empty else [HEADER] + rank.rows
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
