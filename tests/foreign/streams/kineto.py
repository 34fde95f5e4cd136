# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what PyTorch's profiler exports: traces of each rank, with the calls of its host and its device's work.

A job may be recorded in one piece or in cycles of steps, each in a file of its own.
"""
import json
import os

from .clocks import BEGIN, Clocks

BASE = 1764400000  # Unix time that the time stamps count from, in seconds
KERNELS = {"allreduce": "AllReduce_Sum_bf16_RING_LL", "_allgather_base": "AllGather_RING_LL",
           "_reduce_scatter_base": "ReduceScatter_Sum_bf16_RING_LL", "send": "SendRecv", "recv": "SendRecv"}


class Trace:
    """The events of one rank in some steps."""

    def __init__(self, rank, clocks, first, last):
        self.rank, self.job, self.clocks = rank, rank.job, clocks
        self.pid = 4000 + 37 * rank.number
        self.device = rank.number % self.job.node_size
        self.numbers = {name: str(i) for i, name in enumerate(self.job.groups)}
        self.mine = [name for name, members in self.job.groups.items() if rank.number in members]
        self.steps = range(first, last)
        self.rows = []

    def stamp(self, time):
        """Microseconds after BASE."""
        return (BEGIN - BASE + self.clocks.seconds(self.rank.number, time)) * 1e6

    def add(self, category, name, place, begin, end, args):
        self.rows.append(f'{{"ph": "X", "cat": "{category}", "name": "{name}", {place}, "ts": {self.stamp(begin):.3f}, '
                         f'"dur": {(end - begin) * 1e6:.3f}, "args": {{{args}}}}}')

    def call(self, name, thread, begin, end, number, kind):
        place = f'"pid": {self.pid}, "tid": {self.pid + 150 * thread}'
        self.add("cuda_runtime", name, place, begin, end, f'"External id": {number}, "cbid": {kind}, "correlation": {number}')

    def step(self, step):
        begin, end = self.rank.steps[step]
        self.add("user_annotation", f"ProfilerStep#{step + 10}", f'"pid": {self.pid}, "tid": {self.pid}', begin, end,
                 f'"External id": {step + 1}, "Ev Idx": {step}')

    def collective(self, collective):
        """What a communication says of itself."""
        job, group, count = self.job, collective.group, collective.elements
        members, name = job.groups[group], collective.name
        more = ""
        if name in ("send", "recv"):
            ends = [members.index(end) for end in collective.members]
            more = f', "Src Rank": {ends[0]}, "Dst Rank": {ends[1]}'
        incoming = count // len(members) if name == "_allgather_base" else count
        outgoing = count // len(members) if name == "_reduce_scatter_base" else count
        return (f', "Collective name": "{name}", "In msg nelems": {incoming}, "Out msg nelems": {outgoing}, '
                f'"Group size": {len(members)}, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", '
                f'"Process Group Name": "{self.numbers[group]}", "Process Group Description": "{job.titles[group]}", '
                f'"Process Group Ranks": "{list(members)}", "Seq": {collective.number + 1}{more}')

    def op(self, number, op):
        """What ran on the device, and its launch."""
        category, name, call, more = "kernel", op.name, "cudaLaunchKernel", ""
        if op.collective:
            name = f"ncclDevKernel_{KERNELS[op.name]}(ncclDevKernelArgsStorage<4096ul>)"
            call, more = "cudaLaunchKernelExC", self.collective(op.collective)
        elif name.startswith("Memcpy"):
            category, call, more = "gpu_memcpy", "cudaMemcpyAsync", ', "bytes": 65536'
        self.add(category, name, f'"pid": {self.device}, "tid": {op.stream}', op.start, op.end,
                 f'"External id": {number}, "device": {self.device}, "context": 1, "stream": {op.stream}, '
                 f'"correlation": {number}{more}')
        self.call(call, op.thread, op.called, op.returned, number, 211)

    def fill(self):
        for step in self.steps:
            self.step(step)
        for number, op in enumerate(self.rank.ops, 1000):
            if op.step in self.steps:
                self.op(number, op)
        for number, (name, begin, end, thread, step) in enumerate(self.rank.waits, 900000):
            if step in self.steps:
                self.call(name, thread, begin, end, number, 131)

    def header(self):
        job = self.job
        groups = [{"pg_name": self.numbers[name], "pg_desc": job.titles[name], "backend_config": "cuda:nccl",
                   "pg_size": len(job.groups[name]), "ranks": job.groups[name]} for name in self.mine]
        document = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": self.device, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}],
            "distributedInfo": {"backend": "nccl", "rank": self.rank.number, "world_size": job.ranks,
                                "pg_count": len(groups), "pg_config": groups, "nccl_version": "2.21.5"},
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE * 10**9,
        }
        return json.dumps(document)[:-1] + ', "traceEvents": [\n'

    def name(self, cycle):
        if self.job.names == "rank":
            return f"rank{self.rank.number}.json" if not self.job.cycles else f"rank{self.rank.number}_{cycle}.json"
        written = int((BEGIN + self.rank.steps[self.steps[-1]][1]) * 1e9)
        return f"{self.job.node_name(self.job.node(self.rank.number))}_{self.pid}.{written}.pt.trace.json"


def write(play, truth, directory):
    job = truth.job
    clocks = Clocks(job)
    for rank in play.ranks:
        if rank.number == truth.lost:
            continue
        for cycle, (first, last) in enumerate(job.cycles or [(0, job.steps)]):
            trace = Trace(rank, clocks, first, last)
            trace.fill()
            name = trace.name(cycle)
            with open(os.path.join(directory, name), "w", encoding="ascii") as out:
                out.write(trace.header())
                out.write(",\n".join(trace.rows))
                out.write(f'\n], "traceName": "./{name}"}}\n')
    return directory, [BEGIN + end for end in truth.ends]
