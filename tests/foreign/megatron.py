# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of Megatron: tensor, pipeline and data parallel, one forward and one backward by turns."""
from engine import Op

FORWARD, BACKWARD = 0.33, 0.67


class Pipe:
    """What one rank does in one step."""

    def __init__(self, job, now, host):
        self.job, self.now, self.host = job, now, host
        self.t, self.d, self.p = job.place(now.rank)
        self.batched = job.form != "kineto"  # one call for both directions
        self.unit = job.step_seconds * job.stage_work[self.p] / job.micro
        self.hop = job.transfer_share * job.step_seconds * 0.05 / job.micro
        self.last = next(iter(now.player.updated.get(now.rank, ())), None)  # what comes next waits for it
        self.counts = {}

    def launch(self, stream, op):
        return self.now.launch(stream, op, self.host)

    def tag(self, optype, micro=-1, chunk=-1):
        number = self.counts.get(optype, 0)
        self.counts[optype] = number + 1
        return {"optype": optype, "seq_id": number, "mb": micro, "mc": chunk}

    def compute(self, name, seconds, micro):
        """The layers of one micro-batch, each followed by its all-reduce in the tensor group."""
        job, now = self.job, self.now
        label = self.tag(f"{name}-compute", micro, 0)
        if name == "forward" and self.p == 0:
            if job.load_inside:
                label["mark"] = Op("mark", 0.0, after=self.waits())
                yield ("launch", "compute", label["mark"], 2e-6)
            yield ("host", now.load() / job.micro, "load")
        layers = job.layers if job.tp > 1 else 1
        for layer in range(layers):
            final = name == "backward" and micro == job.micro - 1 and layer == layers - 1
            op = Op(name, now.work(seconds / layers, micro, final), after=self.waits(), label=label)
            yield self.launch("compute", op)
            self.last = op
            if job.tp > 1:
                cost = 0.1 * seconds / layers
                self.last = now.player.collective(now.rank, now.step, "AllReduce", f"tp{self.p}.{self.d}", cost, (op,), 1 << 22)
                yield self.launch("tp", self.last)

    def waits(self):
        return (self.last,) if self.last else ()

    def forward(self, micro):
        return self.compute("forward", self.unit * FORWARD, micro)

    def backward(self, micro):
        return self.compute("backward", self.unit * BACKWARD, micro)

    def exchange(self, send=None, receive=None):
        """Sends and receives with one neighbour: send and receive are (direction, micro-batch)."""
        job, now = self.job, self.now
        messages = []
        for way, message in (("send", send), ("recv", receive)):
            if message is None:
                continue
            direction, micro = message
            below = (direction == "forward") == (way == "recv")
            stage = self.p - 1 if below else self.p + 1
            if 0 <= stage < job.pp:
                messages.append((way, direction, micro, job.number(self.t, self.d, stage)))
        if not self.batched:
            # Both ends must take the messages of a pair in one order: the forward one first.
            messages.sort(key=lambda m: m[1] != "forward")
        group = f"pp{self.d}.{self.t}"
        after = self.waits()
        for part in [messages] if self.batched else [[m] for m in messages]:
            if not part:
                continue
            peers = [(peer, (direction, now.step, micro)) for _, direction, micro, peer in part]
            name = "SendRecv" if self.batched else part[0][0]
            op = now.player.exchange(now.rank, now.step, name, group, peers, self.hop, after)
            op.label["tags"] = [self.tag(f"{direction}-{way}") for way, direction, _, _ in part]
            pair = f"p2p {min(now.rank, part[0][3])}:{max(now.rank, part[0][3])}"
            yield self.launch("p2p" if self.batched else pair, op)
            self.last = op

    def schedule(self):
        """One forward, one backward, as Megatron's schedule without interleaving."""
        micro = self.job.micro
        warm = min(self.job.pp - self.p - 1, micro)
        rest = micro - warm
        for i in range(warm):
            yield from self.exchange(receive=("forward", i))
            yield from self.forward(i)
            yield from self.exchange(send=("forward", i))
        yield from self.exchange(receive=("forward", warm))
        for i in range(rest):
            yield from self.forward(warm + i)
            yield from self.exchange(send=("forward", warm + i), receive=("backward", i))
            yield from self.backward(i)
            following = ("forward", warm + i + 1) if i < rest - 1 else None
            yield from self.exchange(send=("backward", i), receive=following)
        for i in range(rest, micro):
            yield from self.exchange(receive=("backward", i))
            yield from self.backward(i)
            yield from self.exchange(send=("backward", i))

    def together(self, name, group, seconds, optype, nelems=0):
        op = self.now.player.collective(self.now.rank, self.now.step, name, group, seconds, self.waits(), nelems)
        if op is None:
            return
        op.label["tags"] = [self.tag(optype)]
        yield self.launch("dp" if group.startswith("dp") else "world", op)
        self.last = op

    def small(self, optype, seconds):
        op = Op("optimizer", self.now.work(seconds), after=self.waits(), label=self.tag(optype))
        yield self.launch("compute", op)
        self.last = op

    def finish(self):
        """Gradients are scattered, their norm is taken, parameters are updated."""
        job = self.job
        step, share = job.step_seconds, job.transfer_share
        if job.form == "straggler":
            label = self.tag("gc", 0)
            yield self.launch("compute", Op("mark", 0.0, after=self.waits(), label=label))
            yield from self.small("layernorm-grads-all-reduce", 0.003 if job.hidden_tp > 1 else 5e-5)
        if job.pp > 1 and self.p in (0, job.pp - 1):
            yield from self.together("AllReduce", f"emb{self.d}.{self.t}", 0.004 * step, "embedding-grads-all-reduce", 1 << 24)
        yield from self.together("ReduceScatter", f"dp{self.p}.{self.t}", 0.6 * share * step, "grads-reduce-scatter", 1 << 26)
        yield from self.together("AllReduce", "world", 2e-4, "optimizer-clip-main-grad", 1)
        yield from self.small("optimizer", 0.01 * step)
        self.now.player.updated[self.now.rank] = (self.last,)

    def gather(self):
        return self.together("AllGather", f"dp{self.p}.{self.t}", 0.25 * self.job.transfer_share * self.job.step_seconds,
                             "params-all-gather", 1 << 25)


def megatron(job, now, host):
    pipe = Pipe(job, now, host)
    yield from pipe.gather()
    yield from pipe.schedule()
    yield from pipe.finish()
