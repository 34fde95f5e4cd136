# SPDX-License-Identifier: GPL-3.0-or-later
"""What DistributedDataParallel and FSDP do in a step, and what every job does between steps."""
from engine import Op
from megatron import megatron

FORWARD, BACKWARD, OPTIMIZER = 0.32, 0.64, 0.04


def launches(job):
    """How many launches the host's time of a step is shared by."""
    if job.layout == "ddp":
        return 3 * job.layers + job.buckets + 2
    if job.layout == "fsdp":
        return 6 * job.layers + 2
    return job.micro * (4 + 4 * job.layers * (1 if job.tp == 1 else 2)) + 5


def evaluate(job, now, host):
    """Forward passes over a few batches; each rank has its own."""
    for batch in range(3):
        yield ("host", now.load(), "load")
        op = Op("forward", now.work(job.step_seconds * FORWARD, micro=100 + batch))
        yield now.launch("compute", op, host)
    op = now.player.collective(now.rank, now.step, "AllReduce", "world", 100e-6, (op,), 1)
    yield now.launch(world_stream(job), op, host)
    yield ("sync", [world_stream(job)], "stream")


def world_stream(job):
    """A group has one stream for all its collectives."""
    return "world" if job.layout == "megatron" else "comm"


def barrier(now, host):
    """It waits for what the device computes, as each collective does, and the host waits for it."""
    after = now.player.updated.get(now.rank, ())
    op = now.player.collective(now.rank, now.step, "AllReduce", "world", 60e-6, after, 1)
    if op:
        stream = world_stream(now.player.job)
        yield now.launch(stream, op, host)
        yield ("sync", [stream], "stream")


def between(job, now, host):
    """What follows some steps: a sync for the loss, a barrier, an evaluation, a checkpoint."""
    step = now.step + 1
    if job.sync_every and step % job.sync_every == 0:
        yield ("sync", ["compute"], "item")
    if job.barrier:
        yield from barrier(now, host)
    if job.evaluation and step % job.evaluation == 0:
        yield from evaluate(job, now, host)
    if job.checkpoint and step % job.checkpoint == 0:
        yield ("sync", ["compute"], "device")
        if job.checkpoint_all or now.rank == 0:
            pace = 0.9 + 0.2 * job.stream("checkpoint", now.rank).random()
            yield ("host", job.checkpoint_seconds * pace, "checkpoint")
        yield from barrier(now, host)


def ddp(job, now, host):
    """Buckets of gradients are reduced while the backward pass goes on."""
    player, rank, step = now.player, now.rank, now.step
    layer = job.step_seconds / job.layers
    op = None
    for i in range(job.layers):
        op = Op("forward", now.work(layer * FORWARD, last=now.lost_at * job.layers < i))
        yield now.launch("compute", op, host)
    ready = [job.layers * (b + 1) // job.buckets for b in range(job.buckets)]
    seconds = job.transfer_share * job.step_seconds / job.buckets
    for i in range(job.layers):
        for half in ("input", "weight"):
            op = Op(f"backward {half}", now.work(layer * BACKWARD / 2, last=i == job.layers - 1))
            yield now.launch("compute", op, host)
        for _ in range(ready.count(i + 1)):
            reduced = player.collective(rank, step, "AllReduce", "world", seconds, (op,))
            yield now.launch("comm", reduced, host)
    op = Op("optimizer", now.work(job.step_seconds * OPTIMIZER), after=(reduced,))
    yield now.launch("compute", op, host)
    player.updated[rank] = (op,)


def fsdp(job, now, host):
    """Parameters of a layer are gathered ahead of their use; gradients are scattered behind it."""
    player, rank, step = now.player, now.rank, now.step
    count, ahead = job.layers, job.prefetch
    layer = job.step_seconds / count
    seconds = job.transfer_share * job.step_seconds / (3 * count)
    done = []

    def gather(used):
        # The memory of a layer is free once the one before has been used.
        after = (done[used],) if used >= 0 else player.updated.get(rank, ())
        return player.collective(rank, step, "AllGather", "world", seconds, after)

    gathered = []
    for part, share in (("forward", FORWARD), ("backward", BACKWARD)):
        for i in range(count):
            while len(gathered) - (count if part == "backward" else 0) < min(i + 1 + ahead, count):
                gathered.append(gather(len(done) - ahead))
                yield now.launch("comm", gathered[-1], host)
            mine = gathered[i + (count if part == "backward" else 0)]
            for half in range(1 if part == "forward" else 2):
                last = part == "backward" and i == count - 1
                op = Op(part, now.work(layer * share / (half_count(part)), last=last), after=(mine,))
                yield now.launch("compute", op, host)
            done.append(op)
            if part == "backward":
                # Calls of one group run one after the other, whatever their stream.
                group, stream = ("scatter", "scatter") if job.two_groups else ("world", "comm")
                scattered = player.collective(rank, step, "ReduceScatter", group, seconds, (op,))
                yield now.launch(stream, scattered, host)
    norm = player.collective(rank, step, "AllReduce", "world", 50e-6, (scattered,), 1)
    yield now.launch("comm", norm, host)
    op = Op("optimizer", now.work(job.step_seconds * OPTIMIZER), after=(norm,))
    yield now.launch("compute", op, host)
    player.updated[rank] = (op,)


def half_count(part):
    return 1 if part == "forward" else 2


BODIES = {"ddp": ddp, "fsdp": fsdp, "megatron": megatron}


def program(player, rank):
    job = player.job
    body = BODIES[job.layout]
    for step in range(job.steps):
        now = player.begin(rank, step)
        host = job.host_share * job.step_seconds / launches(job)
        yield ("step", step)
        if job.layout != "megatron":
            yield ("host", now.load(), "load")
            yield now.launch("compute", Op("copy", 50e-6), host)
        yield from body(job, now, host)
        yield from between(job, now, host)
