# SPDX-License-Identifier: GPL-3.0-or-later
"""One playing of a job, with its fault or without."""
import random
from collections import deque

from .collective import Collective
from .programs import program
from .rank import Rank


def take_turns(programs, woken):
    """Runs generators to their end. Each yields what it waits for; what wakes it is put into `woken`."""
    woken.extend(programs)
    left = len(woken)
    while woken:
        program_of_one = woken.popleft()
        try:
            awaited = next(program_of_one)
        except StopIteration:
            left -= 1
            continue
        if awaited.ends is None:
            awaited.waiters.append(program_of_one)
        else:
            woken.append(program_of_one)
    if left:
        raise RuntimeError(f"{left} ranks never end: the program is not one that could run")


class Play:
    def __init__(self, job, fault):
        self.job, self.fault = job, fault
        self.collectives = {}
        self.woken = deque()
        self.ranks = [Rank(self, number) for number in range(job.ranks)]
        take_turns([program(rank) for rank in self.ranks], self.woken)
        for rank in self.ranks:
            for op in rank.ops:
                if op.collective:
                    op.end = op.collective.ends[rank.number]

    def join(self, rank, name, group, start, seconds, elements, message):
        """The next collective of a group on this rank, or the message of a key: one object for all members."""
        if message:
            sender, receiver, key = message
            members, number = (sender, receiver), key[-1]
        else:
            members, number = self.job.groups[group], rank.number_of_call(group)
            key = (group, number)
        found = self.collectives.get(key)
        if found is None:
            found = self.begin(key, rank.step, Collective(name, group, number, members, elements, seconds, None))
        if found.join(rank.number, start):
            self.woken.extend(found.waiters)
            found.waiters = []
        return found

    def begin(self, key, step, collective):
        """Draws how long the data take."""
        job = self.job
        rng = collective.rng = random.Random(f"{job.seed}/{key}")
        collective.seconds *= 1 + abs(rng.gauss(0, 0.04))
        if rng.random() < job.hiccup * 3:
            collective.seconds *= 1 + rng.paretovariate(2)
        if self.crosses(collective.members):
            collective.seconds *= self.fault.factor(step)
        self.collectives[key] = collective
        return collective

    def crosses(self, members):
        """Whether these data cross the slow NIC."""
        if not self.fault or self.fault.kind != "nic" or not self.fault.ranks.intersection(members):
            return False
        return len({self.job.node(member) for member in members}) > 1

    def mean_ends(self):
        """When the computing of each step was over, in the mean of the ranks."""
        sums = [0.0] * self.job.steps
        for rank in self.ranks:
            for step, end in enumerate(ends_of(rank)):
                sums[step] += end
        return [total / len(self.ranks) for total in sums]

    def step_seconds(self):
        ends = self.mean_ends()
        return [end - begin for begin, end in zip([0.0] + ends, ends)]

    def step_ends(self):
        """When the computing of each step was over on all ranks."""
        return [max(ends) for ends in zip(*map(ends_of, self.ranks))]


def ends_of(rank):
    ends = {}
    for op in rank.kernels:
        ends[op.step] = op.end
    return [ends[step] for step in sorted(ends)]
