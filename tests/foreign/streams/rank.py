# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank: the thread of its host, its compute stream, and its streams of communication. Times are seconds.

What may have to wait for other ranks is a generator: it yields the collective that must end first.
"""
import math
import random

COMPUTE = 7  # the compute stream
QUEUE = 200  # launches that a host may be ahead of its device


class Op:
    """A kernel or a collective, with the call that launched it."""

    __slots__ = ("name", "stream", "called", "returned", "start", "end", "step", "thread", "collective")

    def __init__(self, name, stream, called, returned, start, end, step, thread, collective=None):
        self.name, self.stream = name, stream
        self.called, self.returned = called, returned
        self.start, self.end = start, end  # a collective's end is set when the job is over
        self.step, self.thread = step, thread
        self.collective = collective


class Rank:
    def __init__(self, play, number):
        job = play.job
        self.play, self.job, self.number = play, job, number
        self.now = job.starts[number]  # of the host
        self.free = 0.0  # when the compute stream is free
        self.last = {}  # stream: its last collective
        self.needed = []  # collectives that the next kernel waits for
        self.ops, self.kernels = [], []
        self.waits = []  # (call, begin, end, thread, step)
        self.steps = []  # (begin, end) on the host
        self.calls = {}
        self.thread = 0  # 1: the backward pass
        self.synced = 0  # launches before the last wait

    def begin(self, step):
        """Draws what is true for a whole step."""
        job, fault = self.job, self.play.fault
        self.step = step
        self.rng = random.Random(f"{job.seed}/{self.number}/{step}")
        self.work = math.exp(self.rng.gauss(0, job.lengths)) if job.lengths else 1.0
        if job.job_wide and step >= job.job_wide[0]:
            self.work *= job.job_wide[1]
        self.host_pace = 1.0
        if step == 0:
            self.work *= 1.3
            self.host_pace = 3.0
        self.pace, self.load_more, self.pause = job.static[self.number], 0.0, 0.0
        if fault and self.number in fault.ranks:
            if fault.kind in ("compute", "node"):
                self.pace *= fault.factor(step)
            elif fault.kind == "enqueue":
                self.host_pace *= fault.factor(step)
            elif fault.kind == "load":
                self.load_more = fault.size * fault.strength(step)
            elif fault.kind == "pause":
                self.pause = fault.size * fault.strength(step)

    def busy(self, seconds):
        """Work of the host, which the kernel interrupts now and then."""
        pace = self.host_pace * (1 + abs(self.rng.gauss(0, 0.1)))
        is_interrupted, interruption = self.rng.random() < 0.0005, self.rng.expovariate(200)
        self.now += seconds * pace + is_interrupted * interruption

    def end_of(self, collective):
        while collective.ends is None:
            yield collective
        return collective.ends[self.number]

    def room(self):
        """Waits until the queue of launches has room."""
        if len(self.ops) - self.synced > QUEUE:
            oldest = self.ops[-QUEUE]
            end = (yield from self.end_of(oldest.collective)) if oldest.collective else oldest.end
            self.now = max(self.now, end)

    def compute(self, name, seconds, is_batch=True):
        """Launches a kernel; unless it works on the batch, its time is that of each step."""
        job, rng = self.job, self.rng
        noise = 1 + abs(rng.gauss(0, job.jitter))
        if rng.random() < job.hiccup:
            noise *= 1 + rng.paretovariate(2) * 0.5
        self.busy(job.host_share * seconds)
        yield from self.room()
        called = self.now
        self.now += 6e-6
        start = max(called + 4e-6, self.free + 1.2e-6)
        for collective in self.needed:
            start = max(start, (yield from self.end_of(collective)) + 2e-6)
        self.needed = []
        self.free = start + seconds * noise * self.pace * (self.work if is_batch else 1)
        op = Op(name, COMPUTE, called, self.now, start, self.free, self.step, self.thread)
        self.ops.append(op)
        self.kernels.append(op)

    def communicate(self, name, group, stream, seconds, elements, message=None, is_behind=True, after=None):
        """Launches a collective, or a message (sender, receiver, key), and returns it.

        It runs behind what was computed so far, unless it is not `is_behind`, and after another collective.
        """
        self.now += 25e-6 * self.host_pace
        called = self.now
        self.now += 10e-6
        start = called + 6e-6
        if stream in self.last:
            start = max(start, (yield from self.end_of(self.last[stream])) + 1e-6)
        if is_behind:
            start = max(start, self.free + 2e-6)
            for collective in self.needed:
                start = max(start, (yield from self.end_of(collective)))
        if after is not None:
            start = max(start, (yield from self.end_of(after)) + 2e-6)
        collective = self.play.join(self, name, group, start, seconds, elements, message)
        self.last[stream] = collective
        self.ops.append(Op(name, stream, called, self.now, start, None, self.step, self.thread, collective))
        return collective

    def number_of_call(self, group):
        """The number of the next collective of a group."""
        number = self.calls.get(group, 0)
        self.calls[group] = number + 1
        return number

    def wait(self, call="cudaStreamSynchronize", moment=None, collective=None):
        """The host waits for a collective, a moment on the device, or all that the compute stream has."""
        begin = self.now
        if collective is not None:
            moment = yield from self.end_of(collective)
        elif moment is None:
            moment = self.free
            for needed in self.needed:
                moment = max(moment, (yield from self.end_of(needed)))
        self.now = max(self.now, moment + 8e-6) + 3e-6
        self.waits.append((call, begin, self.now, self.thread, self.step))
        self.synced = len(self.ops)
