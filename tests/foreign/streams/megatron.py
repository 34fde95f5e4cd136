# SPDX-License-Identifier: GPL-3.0-or-later
"""A step of a job with tensor, pipeline and data parallelism: one forward and one backward by turns."""
from . import parts

ACTIVATIONS = 4 * 2**20  # elements of a message
MESSAGE = 0.3e-3  # seconds


class Pipe:
    """What one rank does in one step."""

    def __init__(self, rank):
        self.rank, self.job = rank, rank.job
        self.t, self.d, self.p = self.job.place(rank.number)

    def has(self, stage):
        return 0 <= stage < self.job.pp

    def exchange(self, name, direction, stage, micro, stream):
        """Sends to a stage, or receives from it, the activations or gradients of a micro-batch."""
        rank, job = self.rank, self.job
        peer = job.number(self.t, self.d, stage)
        ends = (rank.number, peer) if name == "send" else (peer, rank.number)
        message = (*ends, (direction, *ends, rank.step * job.micro + micro))
        return rank.communicate(name, f"p{self.d}.{self.t}", stream, MESSAGE, ACTIVATIONS, message)

    def layer_part(self, name, share):
        """A part of a layer, and the sum over its tensor group, which the next part waits for."""
        rank, seconds = self.rank, self.job.layer_seconds
        yield from rank.compute(name, seconds * share)
        if self.job.tp > 1:
            group = f"t{self.p}.{self.d}"
            rank.needed.append((yield from rank.communicate("allreduce", group, parts.BUCKETS, seconds * 0.06, 8 * 2**20)))

    def forward(self, micro):
        rank, job = self.rank, self.job
        rank.thread = 0
        if self.has(self.p - 1):
            rank.needed.append((yield from self.exchange("recv", "f", self.p - 1, micro, parts.FORWARD_RECEIVE)))
        for layer in range(job.layers):
            parts.collect_garbage(rank, layer, micro)
            yield from self.layer_part("gemm_attn", 0.45)
            yield from self.layer_part("gemm_mlp", 0.55)
        if self.has(self.p + 1):
            yield from self.exchange("send", "f", self.p + 1, micro, parts.FORWARD_SEND)
        elif job.last_work:
            yield from rank.compute("logits_gemm", job.layer_seconds * job.last_work)

    def backward(self, micro):
        rank = self.rank
        if self.has(self.p + 1):
            rank.needed.append((yield from self.exchange("recv", "b", self.p + 1, micro, parts.BACKWARD_RECEIVE)))
        rank.thread = 1
        for _ in range(self.job.layers):
            yield from self.layer_part("gemm_mlp_bwd", 1.1)
            yield from self.layer_part("gemm_attn_bwd", 0.9)
        rank.thread = 0
        if self.has(self.p - 1):
            yield from self.exchange("send", "b", self.p - 1, micro, parts.BACKWARD_SEND)

    def schedule(self):
        micro = self.job.micro
        warm = min(self.job.pp - self.p - 1, micro)
        for i in range(warm):
            yield from self.forward(i)
        for i in range(warm, micro):
            yield from self.forward(i)
            yield from self.backward(i - warm)
        for i in range(micro - warm, micro):
            yield from self.backward(i)

    def reduce(self):
        """Two buckets of gradients, over the replicas."""
        job, rank = self.job, self.rank
        if job.dp == 1:
            return
        seconds = 2 * job.layer_seconds * job.transfer_share
        for _ in range(2):
            reduced = yield from rank.communicate("allreduce", f"d{self.p}.{self.t}", parts.BUCKETS + 1, seconds, 25 * 2**19)
        rank.needed.append(reduced)


def megatron(rank):
    pipe = Pipe(rank)
    yield from pipe.schedule()
    yield from pipe.reduce()
    yield from parts.clip_and_update(rank)
