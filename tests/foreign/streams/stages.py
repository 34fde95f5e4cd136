# SPDX-License-Identifier: GPL-3.0-or-later
"""A pipeline whose operations run one after the other, as tables of operation times show it.

A worker is the leader of a tensor group. Its operations are (step, name, start, end, number, micro-batch); the
number counts those of one name in a step.
"""
import collections
import math
import random

from .play import take_turns


class Meeting:
    """Data that move once all members have come; the slowest network says how long it takes."""

    def __init__(self, members):
        self.members = members
        self.seconds = self.latest = 0.0
        self.came = 0
        self.ends = None
        self.waiters = []


class Stages:
    """One playing of a job, with its fault or without."""

    def __init__(self, job, fault):
        self.job, self.fault = job, fault
        self.meetings = {}
        self.woken = collections.deque()
        self.workers = [Worker(self, number) for number in range(job.ranks)]
        take_turns([worker.play() for worker in self.workers], self.woken)

    def meet(self, key, members, time, seconds):
        meeting = self.meetings.setdefault(key, Meeting(members))
        meeting.came += 1
        meeting.latest, meeting.seconds = max(meeting.latest, time), max(meeting.seconds, seconds)
        if meeting.came == members:
            meeting.ends = meeting.latest + meeting.seconds
            self.woken.extend(meeting.waiters)
        return meeting

    def step_seconds(self):
        """In the mean of the workers."""
        return [sum(times) / len(self.workers) for times in zip(*(worker.steps for worker in self.workers))]

    def bounds(self):
        """When the first operation of each step began, and when the last ended."""
        begins, ends = [math.inf] * self.job.steps, [0.0] * self.job.steps
        for worker in self.workers:
            for step, _, start, end, _, _ in worker.ops:
                begins[step], ends[step] = min(begins[step], start), max(ends[step], end)
        return begins, ends

    def step_ends(self):
        """As a reader of the table sees them, one step after the other."""
        now, found = 0.0, []
        for begin, end in zip(*self.bounds()):
            now += end - begin
            found.append(now)
        return found


class Worker:
    def __init__(self, stages, number):
        self.stages, self.job, self.number = stages, stages.job, number
        self.p, self.d = divmod(number, self.job.dp)
        self.now = self.job.starts[number]
        self.ops = []
        self.steps = []  # seconds

    # ---- what is drawn -----------------------------------------------------------------------------

    def begin(self, step):
        job, fault = self.job, self.stages.fault
        self.step = step
        self.rng = random.Random(f"{job.seed}/{self.number}/{step}")
        self.counts = collections.Counter()
        self.fault = fault if fault and self.number in fault.ranks and fault.strength(step) else None
        self.pace = job.static[self.number] * (1.5 if step == 0 else 1.0)
        if job.job_wide and step >= job.job_wide[0]:
            self.pace *= job.job_wide[1]
        if self.fault and self.fault.kind in ("compute", "node"):
            self.pace *= self.fault.factor(step)

    def transfer(self, seconds):
        """Seconds of data on this worker's network."""
        slow = self.fault.factor(self.step) if self.fault and self.fault.kind == "nic" else 1.0
        noise = 1 + abs(self.rng.gauss(0, 0.06))
        return seconds * slow * noise * (3 if self.rng.random() < self.job.hiccup * 2 else 1)

    def lost(self, kind, share=1.0):
        """Seconds that the host loses."""
        return self.fault.size * self.fault.strength(self.step) * share if self.fault and self.fault.kind == kind else 0.0

    def gap(self, micro):
        """The host's time before a computation; micro is that of a forward pass."""
        seconds = 0.05e-3 * (1 + self.rng.random())
        if self.rng.random() < 0.0005:
            seconds += self.rng.expovariate(100)
        seconds += self.lost("enqueue", 0.5 / self.job.micro)
        return seconds + (self.lost("pause") if micro == self.job.micro // 2 else 0.0)

    # ---- operations --------------------------------------------------------------------------------

    def note(self, name, start, micro=-1):
        self.ops.append((self.step, name, start, self.now, self.counts[name], micro))
        self.counts[name] += 1

    def compute(self, name, micro):
        job, rng = self.job, self.rng
        # All stages of a replica have the same micro-batch.
        length = random.Random(f"{job.seed}/v/{self.d}/{self.step}/{micro}").gauss(0, job.lengths) if job.lengths else 0.0
        noise = 1 + abs(rng.gauss(0, job.jitter))
        if rng.random() < job.hiccup:
            noise *= 1 + 0.4 * rng.paretovariate(2)
        self.now += self.gap(micro if name == "forward" else -1)
        start = self.now
        seconds = job.forward_seconds * (1 if name == "forward" else 1.9)
        if self.p == job.pp - 1:
            seconds *= 1 + job.last_work
        self.now += seconds * math.exp(length) * noise * self.pace
        self.note(f"{name}-compute", start, micro)

    def together(self, name, key, members, seconds, late=0.0):
        """An operation of a group; its members return up to `late` seconds apart."""
        start = self.now
        meeting = self.stages.meet((key, self.step), members, start, seconds)
        while meeting.ends is None:
            yield meeting
        self.now = meeting.ends + (self.rng.uniform(0, late) if late else 0.0)
        self.note(name, start)

    def alone(self, name, seconds):
        start = self.now
        self.now += seconds
        self.note(name, start)

    def exchange(self, *messages):
        """Messages (direction, send or recv, micro-batch) of one call, which all have its time."""
        start, meetings = self.now, []
        for direction, way, micro in messages:
            is_below = (direction == "forward") == (way == "recv")
            peer = self.number - self.job.dp if is_below else self.number + self.job.dp
            ends = (self.number, peer) if way == "send" else (peer, self.number)
            meetings.append(self.stages.meet((direction, ends, self.step, micro), 2, start, self.transfer(0.9e-3)))
        for meeting in meetings:
            while meeting.ends is None:
                yield meeting
        self.now = max([self.now] + [meeting.ends for meeting in meetings]) + self.rng.uniform(0, 3e-5)
        for direction, way, _ in messages:
            self.note(f"{direction}-{way}", start)

    # ---- the program -------------------------------------------------------------------------------

    def play(self):
        for step in range(self.job.steps):
            begin = self.now
            self.begin(step)
            yield from self.gather()
            yield from self.schedule()
            yield from self.finish()
            self.steps.append(self.now - begin)

    def gather(self):
        job = self.job
        yield from self.together("params-all-gather", ("gather", self.p), job.dp, self.transfer(0.3 * job.forward_seconds), 1e-4)
        self.now += 10e-3 * (1 + abs(self.rng.gauss(0, 0.3))) * (1.5 if self.step == 0 else 1)
        self.now += self.lost("load")

    def schedule(self):
        """One forward, one backward by turns."""
        micro, is_first, is_last = self.job.micro, self.p == 0, self.p == self.job.pp - 1
        warm = min(self.job.pp - self.p - 1, micro)
        for i in range(warm):
            if not is_first:
                yield from self.exchange(("forward", "recv", i))
            self.compute("forward", i)
            yield from self.exchange(("forward", "send", i))
        if warm < micro and not is_first:
            yield from self.exchange(("forward", "recv", warm))
        for i in range(warm, micro):
            self.compute("forward", i)
            if not is_last:
                yield from self.exchange(("forward", "send", i), ("backward", "recv", i - warm))
            self.compute("backward", i - warm)
            if not is_first:
                following = [("forward", "recv", i + 1)] if i < micro - 1 else []
                yield from self.exchange(("backward", "send", i - warm), *following)
        for i in range(micro - warm, micro):
            yield from self.exchange(("backward", "recv", i))
            self.compute("backward", i)
            if not is_first:
                yield from self.exchange(("backward", "send", i))

    def finish(self):
        """Gradients are reduced and clipped, parameters are updated; some steps are followed by a checkpoint."""
        job, rng = self.job, self.rng
        self.ops.append((self.step, "gc", self.now, self.now, 0, 0))
        self.now += 2e-3 * rng.uniform(0.8, 1.2)
        self.alone("layernorm-grads-all-reduce", 0.04e-3)
        if job.pp > 1 and self.p in (0, job.pp - 1):
            yield from self.together("embedding-grads-all-reduce", ("embedding", self.d), 2, self.transfer(20e-3))
        self.now += 5e-3 * rng.uniform(0.9, 1.1)
        yield from self.together("grads-reduce-scatter", ("scatter", self.p), job.dp, self.transfer(0.9 * job.forward_seconds), 1e-4)
        yield from self.together("optimizer-clip-main-grad", ("clip",), job.ranks, 8e-3, 1e-4)
        self.alone("optimizer", 0.4 * job.forward_seconds * (1 + abs(rng.gauss(0, job.jitter))))
        if job.checkpoint and self.step and self.step % job.checkpoint == 0:
            self.now += 2.0 + rng.uniform(0, 0.05) + (1 if self.number == 0 else 0)
