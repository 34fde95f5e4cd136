# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of ranks: what a host does in each step, and how long each piece of work takes."""
import math

import engine
from job import log_normal


class Player:
    """One playing of a job, with its fault or without."""

    def __init__(self, job, fault):
        self.job = job
        self.fault = fault
        job.streams = {}
        self.meetings = {}
        self.calls = {}
        self.updated = {}  # the last operation of a rank's step: what uses parameters waits for it

    # ---- how long things take --------------------------------------------------------------------

    def length(self, rank, step, micro):
        """The work of a batch against the mean; all ranks of a replica of the model share it."""
        job = self.job
        if not job.lengths:
            return 1.0
        return log_normal(job.stream("length", job.place(rank)[1], step, micro), job.lengths)

    def pace(self, rank, step):
        """How much slower the device of this rank is in this step; drawn once a step."""
        job = self.job
        pace = job.static[rank] * log_normal(job.stream("pace", rank), job.jitter)
        pace *= 1 + job.drift[rank] * step / job.steps
        pace *= 1 + job.wave[0] * math.sin(6.28 * job.wave[1] * step / job.steps)
        if step < job.warm_up:
            pace *= job.warm_factor
        if job.job_wide and step >= job.job_wide[0]:
            pace *= job.job_wide[1]
        return pace

    def hiccup(self, rank):
        """Seconds that this step loses on this rank, now and then."""
        rng = self.job.stream("hiccup", rank)
        chance, size = rng.random(), rng.paretovariate(1.5)
        return 0.1 * self.job.step_seconds * min(size, 20) if chance < self.job.hiccup else 0.0

    def slowness(self, kind, rank, step):
        return self.fault.factor(kind, rank, step) if self.fault else 1.0

    def begin(self, rank, step):
        """The state of a rank in a step."""
        return Step(self, rank, step)

    # ---- communication ---------------------------------------------------------------------------

    def transfer(self, group, members, seconds, step, key=None):
        """The next one of a group, or the one of this key: the same object for all its members."""
        if key is None:
            raise ValueError("a transfer needs a key")
        found = self.meetings.get((group, key))
        if found is None:
            job = self.job
            rng = job.stream("transfer", group)
            seconds *= log_normal(rng, 0.03) * (1 if rng.random() > 0.002 else rng.uniform(2, 6))
            if job.spans(members):
                seconds *= max(self.slowness("network", rank, step) for rank in members)
            found = self.meetings[group, key] = engine.Transfer(len(members), seconds)
        return found

    def collective(self, rank, step, name, group, seconds, after=(), nelems=0):
        members = self.job.groups[group]
        if len(members) == 1:
            return None
        number = self.calls.get((rank, group), 0)
        self.calls[rank, group] = number + 1
        transfer = self.transfer(group, members, seconds, step, number)
        label = {"group": group, "seq": number, "nelems": nelems or int(seconds * 2e9) // 1024 * 1024 + 1024}
        return engine.Op(name, transfers=(transfer,), after=after, label=label)

    def exchange(self, rank, step, name, group, peers, seconds, after=(), nelems=1 << 20):
        """Sends and receives of one call; peers is a list of (peer, key of the message)."""
        transfers = []
        for peer, key in peers:
            pair = f"{group}:{min(rank, peer)}-{max(rank, peer)}"
            transfers.append(self.transfer(pair, (rank, peer), seconds, step, key))
        number = self.calls.get((rank, group), 0)
        self.calls[rank, group] = number + 1
        label = {"group": group, "seq": number, "nelems": nelems, "peers": peers}
        return engine.Op(name, transfers=tuple(transfers), after=after, label=label)


class Step:
    """What one rank draws for one step."""

    def __init__(self, player, rank, step):
        self.player, self.rank, self.step = player, rank, step
        job = player.job
        self.kernels = job.stream("kernel", rank)
        self.pace = player.pace(rank, step) * player.slowness("compute", rank, step)
        self.lost = player.hiccup(rank)
        self.lost_at = self.kernels.random()
        self.host_pace = log_normal(job.stream("host", rank), 0.05) * player.slowness("host", rank, step)
        self.load_pace = log_normal(job.stream("load", rank), 0.15)
        self.load_more = player.slowness("load", rank, step) - 1

    def work(self, seconds, micro=0, last=False):
        """Device seconds of a piece of work; a hiccup falls on one piece of the step."""
        job = self.player.job
        seconds *= self.pace * log_normal(self.kernels, job.kernel_jitter)
        seconds *= self.player.length(self.rank, self.step, micro)
        if self.lost and (last or self.kernels.random() < 0.1):
            seconds += self.lost
            self.lost = 0.0
        return seconds

    def launch(self, stream, op, seconds):
        return ("launch", stream, op, seconds * self.host_pace)

    def load(self):
        """Host seconds of reading the next batch."""
        job = self.player.job
        return job.step_seconds * (job.load_share * self.load_pace + self.load_more)
