# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks, streams and transfers of a synchronous job as discrete events. Times are seconds.

A rank is a host that runs its program and enqueues operations on device streams. An operation starts
when its stream reaches it, its launch has come to the device and the operations that it waits for have
ended. A kernel takes its time. A communication ends when all its transfers have; a transfer begins when
its last member has started, so all members end together.
"""
from collections import deque

LATENCY = 8e-6  # from the launch to the earliest start on the device
CALL = 7e-6  # of the runtime, if it does not block
SYNC = 6e-6  # from the end on the device to the return of the waiting host


class Transfer:
    """Data that moves between the members of a group once all of them have started."""

    __slots__ = ("members", "seconds", "ops")

    def __init__(self, members, seconds):
        self.members = members
        self.seconds = seconds
        self.ops = []


class Op:
    """One kernel, or one communication with its transfers, of one stream of one rank."""

    __slots__ = ("name", "step", "seconds", "transfers", "after", "label", "begun", "called", "launched", "start", "end",
                 "left", "until", "waiters", "stream")

    def __init__(self, name, seconds=0.0, transfers=(), after=(), label=None):
        self.name = name
        self.seconds = seconds
        self.transfers = transfers
        self.after = after
        self.label = label
        self.start = self.end = None
        self.until = 0.0
        self.waiters = []


class Stream:
    """A queue of operations of one device, which run one after the other."""

    def __init__(self, name, work):
        self.name = name
        self.work = work
        self.queue = deque()
        self.tail = 0.0
        self.last = None

    def push(self, op):
        op.stream = self
        self.queue.append(op)
        self.last = op
        if len(self.queue) == 1:
            self.advance()

    def advance(self):
        while self.queue:
            op = self.queue[0]
            if op.start is None and not self.begin(op):
                return
            if op.end is None:
                return
            self.queue.popleft()
            self.tail = op.end
            self.work.extend(op.waiters)
            op.waiters = []

    def begin(self, op):
        """Starts it, unless something that it waits for has not ended."""
        start = max(self.tail, op.launched + LATENCY)
        for other in op.after:
            if other.end is None:
                other.waiters.append(self)
                return False
            start = max(start, other.end)
        op.start = start
        if not op.transfers:
            op.end = start + op.seconds
            return True
        op.left = len(op.transfers)
        for transfer in op.transfers:
            transfer.ops.append(op)
            if len(transfer.ops) == transfer.members:
                self.complete(transfer)
        return True

    def complete(self, transfer):
        end = max(op.start for op in transfer.ops) + transfer.seconds
        for op in transfer.ops:
            op.left -= 1
            op.until = max(op.until, end)
            if op.left == 0:
                op.end = op.until
                self.work.append(op.stream)


class Rank:
    """The host of one rank. Its program yields what it does, in order:

    ("step", number), ("host", seconds, label), ("launch", stream, op, seconds) and ("sync", streams, label).
    """

    def __init__(self, number, program, work, depth):
        self.number = number
        self.program = program
        self.work = work
        self.depth = depth
        self.now = 0.0
        self.step = -1
        self.streams = {}
        self.flight = deque()
        self.waits = self.pending = None
        self.done = False
        self.ops = []  # in the order of launching
        self.host = []  # (step, label, begin, end)
        self.steps = []  # host times at which steps began

    def stream(self, name):
        if name not in self.streams:
            self.streams[name] = Stream(name, self.work)
        return self.streams[name]

    def resume_after(self, op, label):
        """False if it must wait; the operation's end calls advance() again."""
        if op.end is None:
            op.waiters.append(self)
            self.waits = (op, label, self.now)
            return False
        return True

    def woken(self):
        op, label, begin = self.waits
        if op.end is None:
            return False
        self.waits = None
        self.now = max(self.now, op.end + SYNC)
        if label:
            self.host.append((self.step, label, begin, self.now))
        if self.pending:
            stream, launched = self.pending
            self.pending = None
            self.push(stream, launched)
        return True

    def advance(self):
        if self.done or (self.waits and not self.woken()):
            return
        for item in self.program:
            kind = item[0]
            if kind == "launch":
                if not self.launch(*item[1:]):
                    return
            elif kind == "host":
                self.host.append((self.step, item[2], self.now, self.now + item[1]))
                self.now += item[1]
            elif kind == "step":
                self.step = item[1]
                self.steps.append(self.now)
            elif not self.sync(item[1], item[2]):
                return
        self.done = True

    def launch(self, stream, op, seconds):
        """Prepares an operation, and calls the device's runtime, which blocks while its queue is full."""
        op.step = self.step
        op.begun = self.now
        self.now += max(0.0, seconds - CALL)
        op.called = self.now
        if len(self.flight) >= self.depth:
            oldest = self.flight.popleft()
            if oldest.end is None:
                self.pending = (stream, op)
                return self.resume_after(oldest, None)
            self.now = max(self.now, oldest.end)
        self.push(stream, op)
        return True

    def push(self, stream, op):
        self.now += CALL
        op.launched = self.now
        self.ops.append(op)
        self.flight.append(op)
        self.stream(stream).push(op)

    def sync(self, names, label):
        """Blocks until the streams are empty."""
        lasts = [self.streams[name].last for name in names if name in self.streams]
        lasts = [op for op in lasts if op is not None]
        begin = self.now
        for op in lasts:
            if op.end is None:
                # Streams that are waited for together end with the one launched last here.
                return self.resume_after(op, label)
            self.now = max(self.now, op.end + SYNC)
        self.host.append((self.step, label, begin, self.now))
        return True


def play(programs, starts, depth):
    """Runs the programs of all ranks to their end."""
    work = deque()
    ranks = [Rank(number, program, work, depth) for number, program in enumerate(programs)]
    for rank, start in zip(ranks, starts):
        rank.now = start
        work.append(rank)
    while work:
        work.popleft().advance()
    stuck = [rank.number for rank in ranks if not rank.done or any(s.queue for s in rank.streams.values())]
    if stuck:
        raise RuntimeError(f"ranks {stuck} never end: the program is not one that could run")
    return ranks


def step_ends(ranks, steps):
    """When each step was over on all ranks: a kernel ended and the host had gone on."""
    ends = [0.0] * steps
    for rank in ranks:
        for op in rank.ops:
            if op.step >= 0 and op.end > ends[op.step]:
                ends[op.step] = op.end
    for i in range(1, steps):
        ends[i] = max(ends[i], ends[i - 1])
    return ends
