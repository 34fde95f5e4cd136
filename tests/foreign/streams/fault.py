# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults: who is slow, in which steps, and how much."""
import random

KINDS = ("compute", "compute", "compute", "host", "host", "nic", "node")
HOST_KINDS = ("load", "pause", "enqueue")  # the reader of batches, the garbage collector, the launching thread
SHAPES = ("sudden", "start", "ramp", "intermittent", "window")


class Fault:
    def __init__(self, job, kind, ranks, target, shape, size, begin, end):
        self.kind = kind
        self.ranks = frozenset(ranks)
        self.target = target  # a rank or a node
        self.shape = shape
        self.size = size  # a factor; of a reader or collector, seconds in a step
        self.begin, self.end = begin, end
        self.steps = job.steps
        self.hits = None
        if shape == "intermittent":
            rng = random.Random(f"f{job.seed}")
            share = rng.uniform(0.2, 0.4)
            self.hits = {step for step in range(begin, end) if rng.random() < share}

    def cls(self):
        return {"nic": "network", "load": "host", "pause": "host", "enqueue": "host"}.get(self.kind, "compute")

    def strength(self, step):
        """0 to 1."""
        if not self.begin <= step < self.end or (self.hits is not None and step not in self.hits):
            return 0.0
        if self.shape == "ramp":
            return min(1.0, (step - self.begin + 1) / max(1, (self.steps - self.begin) * 0.8))
        return 1.0

    def factor(self, step):
        return 1 + (self.size - 1) * self.strength(step)

    def grow(self):
        """Makes it larger, as it costs too little."""
        if self.kind in ("compute", "node"):
            self.size = 1 + (self.size - 1) * 1.6
        else:
            self.size *= 1.6

    def name(self):
        what = {"node": "node", "nic": "NIC of node"}.get(self.kind, "rank")
        one = f" for rank {min(self.ranks)}" if self.kind == "nic" and len(self.ranks) == 1 else ""
        size = f"{1e3 * self.size:.0f} ms" if self.kind in ("load", "pause") else f"x{self.size:.2f}"
        share = f" in {len(self.hits)} steps" if self.hits is not None else ""
        return f"{self.kind} {what} {self.target}{one} {size} {self.shape} {self.begin}..{self.end}{share}"


def draw(job, step_seconds):
    """The fault of a job whose healthy steps take so long, or None."""
    if job.healthy:
        return None
    rng, steps = job.rng, job.steps
    is_table = job.form == "straggler"
    kind = rng.choice(KINDS)
    if kind in ("nic", "node") and not is_table and job.nodes() < 2:
        kind = "compute"
    shape = rng.choice(SHAPES)
    rank = target = rng.randrange(job.ranks)
    size = {"compute": rng.uniform(1.1, 2), "node": rng.uniform(1.15, 1.8), "nic": rng.uniform(2, 6)}.get(kind)
    if kind in ("compute", "node"):
        # What healthy cards differ by is no fault, and what comes at times must cost something.
        size = max(size, {"start": 1.17, "intermittent": 1.5}.get(shape, 0))
    ranks = [rank]
    if kind == "host":
        kind = rng.choice(HOST_KINDS)
    if kind in ("nic", "node"):
        # A table has no nodes: its NIC is that of one worker.
        target = job.node(rank) if is_table else rng.randrange(job.nodes())
        if not is_table:
            ranks = job.ranks_of(target)
            if kind == "nic" and job.layout in ("hsdp", "megatron") and rng.random() < 0.5:
                ranks = [ranks[rng.randrange(len(ranks))]]  # each device has a NIC of its own
        elif kind == "node":
            ranks = [other for other in job.ranks_of(target) if other // job.dp == rank // job.dp]
    is_early = shape == "start" or (shape == "intermittent" and rng.random() < 0.5)
    begin = 0 if is_early else rng.randint(steps // 3, steps * 6 // 10)
    end = steps if shape != "window" else min(steps, begin + rng.randint(steps // 4, steps // 3))
    if size is None:
        size = host_size(job, kind, shape, step_seconds)
    return Fault(job, kind, ranks, target, shape, size, begin, end)


def host_size(job, kind, shape, step_seconds):
    """Seconds that a host loses in a step; a device's host launches so many times as slowly."""
    if kind == "enqueue" and job.form != "straggler":
        return 1.4 / job.host_share
    seconds = step_seconds * random.Random(job.seed).uniform(0.1, 0.6)
    return seconds * (2 if shape == "intermittent" and kind != "enqueue" else 1)


def hidden(fault, job):
    """An empty text, or why no record of the ranks can tell the culprit from others.

    A NIC slows all members of a group alike: only another group, or the time before, tells whose it is. Of two halves
    of a stage that differ from the start either may be the normal one.
    """
    if fault.hits is not None and len(fault.hits) < 8:
        return "in too few steps"
    if fault.begin >= job.steps // 4:
        return ""
    if fault.kind == "nic" and job.form != "straggler":
        crossing = [group for group in job.groups.values() if len({job.node(rank) for rank in group}) > 1]
        return "" if any(not fault.ranks & set(group) for group in crossing) else "in every transfer from the start"
    stage = job.ranks // job.pp
    slow = [sum(1 for rank in fault.ranks if rank // stage == p) for p in range(job.pp)]
    return "two halves from the start" if fault.hits is None and any(2 * n >= stage for n in slow) else ""
