# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults: who is slow, in which steps and how much; and whether anybody could say so."""
import math
import random
import statistics

ENOUGH = 25  # steps that a fault must last to count
COST = 0.04  # of the step time


class Fault:
    def __init__(self, kind, ranks, target, shape, factor, begin, end, hits=None):
        self.kind = kind  # compute, intermittent, load, enqueue, node, stage, nic
        self.ranks = frozenset(ranks)
        self.target = target  # a rank, node or stage
        self.shape = shape
        self.size = factor
        self.begin, self.end = begin, end
        self.hits = hits

    def cls(self):
        return {"load": "host", "enqueue": "host", "nic": "network"}.get(self.kind, "compute")

    def acts(self, step):
        return self.begin <= step < self.end and (self.hits is None or step in self.hits)

    def factor(self, what, rank, step):
        acts = {"compute": "compute", "network": "network"}.get(self.cls(), "load" if self.kind == "load" else "host")
        if what != acts or rank not in self.ranks or not self.acts(step):
            return 1.0
        if self.shape == "ramp":
            return 1 + (self.size - 1) * (step - self.begin + 1) / (self.end - self.begin)
        return self.size

    def name(self):
        what = {"node": "node ", "stage": "stage ", "nic": "NIC of node "}.get(self.kind, "rank ")
        share = f" in {len(self.hits)} steps" if self.hits is not None else ""
        return f"{self.kind} {what}{self.target} x{self.size:.2f} {self.shape} {self.begin}..{self.end}{share}"


def span(rng, steps):
    """(shape, begin, end): from the start, an onset, an end, or a ramp."""
    shape = rng.choice(("start", "start", "onset", "onset", "window", "ramp"))
    onset = rng.randint(steps // 5, max(steps // 5, min(steps // 2, steps - ENOUGH - 1)))
    if shape == "start":
        return shape, 0, steps
    if shape == "window":
        length = rng.randint(ENOUGH, max(ENOUGH, steps // 2))
        begin = rng.randint(0, max(0, steps - length - 5))
        return shape, begin, min(steps, begin + length)
    return shape, onset, steps


def factor_of(rng, least, most):
    """Small ones are as frequent as large ones."""
    return 1 + math.exp(rng.uniform(math.log(least - 1), math.log(most - 1)))


def draw(job):
    """The fault of this job, or None."""
    rng = random.Random(f"{job.seed}/{job.form}/fault")
    if rng.random() < 0.4:
        return None
    kinds = ["compute"] * 7 + ["intermittent"] * 2 + ["load"] * 2
    if job.form != "straggler":
        kinds += ["enqueue"]  # its tables hold no host
    if job.nodes() > 1:
        kinds += ["node"] * 2 + ["nic"] * 2
    if job.pp > 1:
        kinds += ["stage"]
    kind = rng.choice(kinds)
    shape, begin, end = span(rng, job.steps)
    if kind == "stage" and begin == 0:
        shape, begin, end = "onset", max(1, job.steps // 3), job.steps
    rank = rng.randrange(job.ranks)
    if kind == "intermittent":
        share = rng.uniform(0.1, 0.6)
        hits = {step for step in range(begin, end) if rng.random() < share}
        return Fault(kind, [rank], rank, "start" if begin == 0 else "onset", rng.uniform(1.3, 2.5), begin, end, hits)
    if kind == "load":
        # Only those read data that have input: the first stage, and one of a tensor group for all.
        first = [r for r in range(job.ranks) if job.place(r)[2] == 0]
        rank = rng.choice(first)
        return Fault(kind, [rank], rank, shape, 1 + rng.uniform(0.05, 0.8), begin, end)
    if kind == "enqueue":
        return Fault(kind, [rank], rank, shape, rng.uniform(1.3, 5), begin, end)
    if kind in ("node", "nic"):
        node = rng.randrange(job.nodes())
        size = factor_of(rng, 1.05, 2.5) if kind == "node" else rng.uniform(2, 5)
        return Fault(kind, job.ranks_of(node), node, shape, size, begin, end)
    if kind == "stage":
        stage = rng.randrange(job.pp)
        return Fault(kind, [r for r in range(job.ranks) if job.place(r)[2] == stage], stage, shape,
                     factor_of(rng, 1.1, 2), begin, end)
    return Fault(kind, [rank], rank, shape, factor_of(rng, 1.04, 3), begin, end)


def lasts(fault, job):
    """Enough steps, or all of the record."""
    return fault.end - fault.begin >= min(ENOUGH, job.steps)


def stage_of(job, rank):
    """The ranks with the same work."""
    return {other for other in range(job.ranks) if job.place(other)[2] == job.place(rank)[2]}


def is_static(fault, job, peers):
    """Whether healthy ranks may differ as much from the start: a median of 20 steps is known with this error."""
    spread = statistics.pstdev([job.static[rank] for rank in peers])
    return fault.size - 1 <= 0.1 and fault.size - 1 <= 10 * math.hypot(spread, 1.25 * job.jitter / math.sqrt(20))


def identifiable(fault, job):
    """An empty text, or why nobody could name the culprit from the record, however clever.

    - A record that is lost cannot show its rank.
    - A culprit needs somebody to be compared with: a rank of the same stage that is well, or itself
      before the onset (15 steps). One of two peers is only found if the difference stands out of
      what healthy ranks differ.
    - Ranks that are slow from the start, a third of their stage or more, are one of two populations:
      either may be the normal one. A node that is slow from the start must be at least 1.3 times as
      slow, with three times as many peers on others.
    - Healthy ranks differ from the start. One that is slower by a tenth at most is only found if it
      differs ten times as much as its peers do.
    - Random work must not bury the fault: over the steps that it lasts, the mean excess must be
      five standard errors and more of the mean work.
    - Fewer than eight slow steps are hiccups, which healthy ranks have too.
    - A table of operation times names no nodes, so neither a NIC can be named, nor a
      node that holds whole stages. With other records a NIC
      is found by comparison: with groups that cross nodes without it, or with itself before.
    - Where all ranks of a stage are slow, or of the job, only the onset tells.
    """
    if len(fault.ranks) == 1 and (job.lost in fault.ranks or (job.cut and job.cut[0] in fault.ranks)):
        return "its record is lost or cut"
    before = fault.begin - job.warm_up >= 15
    steps = fault.end - fault.begin
    if fault.kind == "nic":
        if job.form == "straggler":
            return "the table has no nodes"
        crossing = [m for m in job.groups.values() if len(m) > 1 and job.spans(m)]
        others = [m for m in crossing if not fault.ranks & set(m)]
        return "" if before or others else "every transfer crosses it from the start"
    peers = [[r for r in range(job.ranks) if job.place(r)[2] == job.place(rank)[2] and r not in fault.ranks and r != job.lost]
             for rank in fault.ranks]
    if not all(peers) and not before:
        return "no healthy peer and no time before"
    if not before and fault.hits is None:
        alike = [len(stage_of(job, rank) & fault.ranks) for rank in fault.ranks]
        if any(2 * slow >= len(p) for slow, p in zip(alike, peers)):
            return "two populations from the start"
        if fault.kind == "node" and (fault.size < 1.3 or any(len(p) < 3 * slow for slow, p in zip(alike, peers))):
            return "a node from the start, with few peers elsewhere"
        if fault.kind == "compute" and is_static(fault, job, peers[0]):
            return "no more than a fleet's spread"
    if fault.kind == "node" and job.form == "straggler" and not all(peers):
        return "the table has no nodes, and a whole stage is slow"
    if fault.hits is not None and len(fault.hits) < 8:
        return "too few slow steps"
    if len(fault.ranks) == job.ranks:
        return "all ranks are slow"
    duty = len(fault.hits) / max(1, steps) if fault.hits is not None else 1.0
    excess = (fault.size - 1) * duty * (0.5 if fault.shape == "ramp" else 1)
    if fault.kind == "enqueue" or (fault.kind == "load" and job.form == "kineto"):
        return ""  # the record has the host's own times
    # Replicas draw their lengths alone; members of one tensor group draw the same.
    lengths = job.lengths / math.sqrt(job.micro if job.layout == "megatron" else 1)
    alike = job.tp > 1 and fault.kind not in ("node", "stage")
    noise = math.hypot(job.jitter, 0.0 if alike else lengths)
    fewest = min((len(p) for p in peers), default=0)
    floor = 0.02 if fewest >= 2 or before else 0.04
    if excess < floor + 5 * noise / math.sqrt(steps):
        return "buried in the noise"
    return ""
