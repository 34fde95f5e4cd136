# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces of a step that several kinds of jobs share."""

# Streams of communication; each kind of call has its own.
BUCKETS, SHARDS, NORM, REPLICAS, WORLD = 20, 22, 24, 25, 30
FORWARD_RECEIVE, FORWARD_SEND, BACKWARD_RECEIVE, BACKWARD_SEND = 41, 42, 43, 44


def collect_garbage(rank, layer, passed):
    """In the middle of the first forward pass."""
    if rank.pause and passed == 0 and layer == rank.job.layers // 2:
        rank.now += rank.pause


def optimizer(rank):
    yield from rank.compute("multi_tensor_apply_adam", 0.6 * rank.job.layer_seconds, False)


def clip_and_update(rank):
    """The norm of the gradients of all ranks, and the optimizer."""
    rank.thread = 0
    yield from rank.compute("l2norm", 0.1 * rank.job.layer_seconds, False)
    rank.needed.append((yield from rank.communicate("allreduce", "0", NORM, 25e-6, 1)))
    yield from optimizer(rank)
