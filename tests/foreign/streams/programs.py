# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host does in a step of DistributedDataParallel and of FSDP, and what every job does between steps."""
from . import parts
from .megatron import megatron

# Kernels of a layer, with their share of its forward time.
FORWARD = (("gemm_fwd", 0.5), ("flash_fwd_kernel", 0.3), ("elementwise", 0.2))
BACKWARD = (("gemm_dgrad", 0.8), ("flash_bwd_kernel", 0.5), ("gemm_wgrad", 0.7))


def kernels(rank, shares):
    for name, share in shares:
        yield from rank.compute(name, rank.job.layer_seconds * share)


def ddp(rank):
    """Buckets of gradients are reduced while the backward pass goes on, in the last of the passes."""
    job = rank.job
    for passed in range(job.passes):
        rank.thread = 0
        for layer in range(job.layers):
            parts.collect_garbage(rank, layer, passed)
            yield from kernels(rank, FORWARD)
        rank.thread = 1
        for layer in range(job.layers):
            yield from kernels(rank, BACKWARD)
            if passed == job.passes - 1 and layer % 2 == 1:
                seconds = 2 * job.layer_seconds * job.transfer_share
                reduced = yield from rank.communicate("allreduce", "0", parts.BUCKETS, seconds, 25 * 2**19)
    rank.needed.append(reduced)
    rank.thread = 0
    yield from rank.compute("multi_tensor_apply_l2norm", 0.1 * job.layer_seconds, False)
    yield from parts.optimizer(rank)


def fsdp(rank):
    """Parameters are gathered a layer ahead, gradients are scattered behind. HSDP does so within a node."""
    job = rank.job
    for passed in range(job.passes):
        yield from gather_and_compute(rank, passed)
        yield from compute_and_scatter(rank)
    yield from parts.clip_and_update(rank)


def gather(rank):
    job = rank.job
    return rank.communicate("_allgather_base", shard(rank), parts.SHARDS, job.layer_seconds * job.transfer_share, 25 * 2**20,
                            is_behind=not job.is_ahead)


def shard(rank):
    return f"n{rank.job.node(rank.number)}" if rank.job.layout == "hsdp" else "0"


def gather_and_compute(rank, passed):
    job = rank.job
    rank.thread = 0
    gathered = yield from gather(rank)
    for layer in range(job.layers):
        mine = gathered
        if layer + 1 < job.layers:
            gathered = yield from gather(rank)
        parts.collect_garbage(rank, layer, passed)
        rank.needed.append(mine)
        yield from kernels(rank, FORWARD)
        if job.is_ahead and layer >= 1:
            # The memory of the layer before is free once it was computed.
            yield from rank.wait("cudaEventSynchronize", rank.kernels[-4].end)


def compute_and_scatter(rank):
    job = rank.job
    seconds = job.layer_seconds * job.transfer_share
    rank.thread = 1
    gathered = yield from gather(rank)
    for layer in reversed(range(job.layers)):
        mine = gathered
        if layer:
            gathered = yield from gather(rank)
        rank.needed.append(mine)
        yield from kernels(rank, BACKWARD)
        done = yield from rank.communicate("_reduce_scatter_base", shard(rank), parts.SHARDS, seconds, 25 * 2**20)
        if job.layout == "hsdp":
            replicas = f"d{rank.number % job.node_size}"
            done = yield from rank.communicate("allreduce", replicas, parts.REPLICAS, 0.5 * seconds, 25 * 2**17, after=done)
        if job.is_ahead and layer < job.layers - 2:
            yield from rank.wait("cudaEventSynchronize", rank.kernels[-5].end)
    rank.needed.append(done)


def between(rank):
    """What follows some steps: a wait for the loss, a checkpoint, an evaluation."""
    job, step = rank.job, rank.step
    if job.sync_every and step % job.sync_every == 0:
        yield from rank.wait()
    if job.checkpoint and step and step % job.checkpoint == 0:
        yield from rank.wait("cudaDeviceSynchronize")
        rank.now += rank.rng.uniform(0.25, 0.3) * (3 if rank.number == 0 else 1)
        barrier = yield from rank.communicate("allreduce", "0", parts.WORLD, 30e-6, 1)
        yield from rank.wait(collective=barrier)
    if job.evaluation and step and step % job.evaluation == 0:
        for _ in range(3 * job.layers):
            yield from rank.compute("eval_fwd_gemm", job.layer_seconds)
        rank.needed.append((yield from rank.communicate("allreduce", "0", parts.WORLD, 40e-6, 2)))
        yield from rank.wait()
    rank.busy(0.2e-3)


def program(rank):
    body = {"ddp": ddp, "fsdp": fsdp, "hsdp": fsdp, "megatron": megatron}[rank.job.layout]
    for step in range(rank.job.steps):
        begin = rank.now
        rank.begin(step)
        rank.thread = 0
        rank.busy(1.5e-3 * rank.rng.paretovariate(3))  # reads a batch
        rank.now += rank.load_more
        yield from rank.compute("Memcpy HtoD (Pinned -> Device)", 0.05e-3, False)
        yield from body(rank)
        rank.thread = 0
        yield from between(rank)
        rank.steps.append((begin, rank.now))
