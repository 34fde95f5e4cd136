#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real PyTorch DistributedDataParallel job over Gloo, one process a rank.

    launch -n 4 --plain -- ddp_gloo.py [--seconds S] [--compute-ms MS] [--spin-ms MS] [--faults FILE] [--out DIR]

Compute is sleeping, so that ranks do not fight for the CPU: three quarters in one function, the rest in
another. With --spin-ms each step also uses the CPU for so long. Faults are those of fault.h: compute,
loader, gc, hang, exit and stop; gc is a collection of garbage in each step, over as many objects as
make it take about so many milliseconds. With --subgroups each half of the ranks also reduces by
itself, and at the end makes every other collective some times. Every collective is counted where it
is made: DistributedDataParallel's own reductions by a communication hook. What else it does by
itself, in the group of all ranks, is not.
"""
import argparse
import gc
import os
import sys
import time

import torch
import torch.distributed as dist

from ddp import Truth, faults


def collect(heap, wanted_ms):
    """Collects garbage, for about so long: a heap that is too small for that is made larger."""
    while True:
        begin = time.monotonic()
        gc.collect()
        took_ms = (time.monotonic() - begin) * 1e3
        if took_ms >= wanted_ms / 2:
            return
        heap.extend([i] for i in range(50000))


def every_collective(truth, half, first):
    """One call of each in the group half, whose first rank is given."""
    count, size, rank = 120, dist.get_world_size(half), dist.get_rank(half)
    data = torch.ones(count)
    parts = [torch.empty(count) for _ in range(size)] if rank == 0 else None

    def add(operation, moved=count):
        truth.add(operation, "half", rank, size, moved)

    dist.broadcast(data, first, group=half)
    add("broadcast")
    dist.reduce(data, first, group=half)
    add("reduce")
    dist.all_gather([torch.empty(count) for _ in range(size)], data, group=half)
    add("all-gather")
    dist.gather(data, parts, first, group=half)
    add("gather")
    dist.scatter(data, parts, first, group=half)
    add("scatter")
    dist.all_to_all_single(torch.empty(count), data, group=half)
    add("all-to-all")
    dist.barrier(group=half)
    add("barrier", 0)


def rest_long(seconds):
    time.sleep(seconds)


def rest_short(seconds):
    time.sleep(seconds)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def wait_out_hang(path, rank):
    now = faults(path, rank)
    while "hang" in now:
        time.sleep(0.01)
        now = faults(path, rank)
    return now


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--compute-ms", type=float, default=40)
    parser.add_argument("--spin-ms", type=float, default=0)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--subgroups", action="store_true")
    parser.add_argument("--faults")
    parser.add_argument("--out")
    options = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    truth = Truth(rank, size)
    half = None
    if options.subgroups:
        groups = [dist.new_group(list(range(start, size, 2))) for start in (0, 1)]
        half = groups[rank % 2]
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(options.width, options.width), torch.nn.ReLU(),
        torch.nn.Linear(options.width, options.width))
    model = torch.nn.parallel.DistributedDataParallel(model)

    def hook(_, bucket):
        truth.add("all-reduce", "world", rank, size, bucket.buffer().numel())
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / size)

    model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    heap = []
    begin = shown = time.monotonic()
    shown_steps = 0
    while True:
        now = faults(options.faults, rank)
        if "hang" in now:
            now = wait_out_hang(options.faults, rank)
        if "exit" in now:
            os._exit(int(now["exit"]))
        time.sleep(now.get("loader", 0) / 1e3)
        if "gc" in now:
            collect(heap, now["gc"])
        batch = torch.rand(16, options.width)
        compute = options.compute_ms / 1e3 * now.get("compute", 1)
        rest_long(compute * 3 / 4)
        rest_short(compute / 4)
        spin(options.spin_ms / 1e3)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        if half is not None:
            dist.all_reduce(torch.ones(100), group=half)
            truth.add("all-reduce", "half", rank // 2, dist.get_world_size(half), 100)
        over = (truth.steps + 1 >= options.steps if options.steps
                else time.monotonic() - begin >= options.seconds)
        wish = torch.tensor([1.0 if over or "stop" in now else 0.0])
        dist.all_reduce(wish)
        truth.add("all-reduce", "world", rank, size, 1)
        truth.steps += 1
        if rank == 0 and time.monotonic() - shown >= 1:
            took = (time.monotonic() - shown) * 1e3 / (truth.steps - shown_steps)
            print(f"step {truth.steps}, {took:.1f} ms a step", flush=True)
            shown, shown_steps = time.monotonic(), truth.steps
        if wish.item() > 0:
            break
    for _ in range(7 if half is not None else 0):
        every_collective(truth, half, rank % 2)
    if options.out:
        truth.write(options.out)
    dist.barrier()
    return 0


status = main()
sys.stdout.flush()
# Gloo's threads and Python's end race now and then ("terminate called"): the job is done.
os._exit(status)
