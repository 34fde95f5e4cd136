#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real PyTorch 2.15 DistributedDataParallel or FSDP job over NCCL, on the stand-in libraries.

    torch.distributed.run --nproc-per-node 4 ddp_nccl.py [--seconds S] [--compute-ms MS]
        [--faults FILE] [--out DIR] [--limit SECONDS]
        [--ahead] [--fsdp]

Compute is a kernel of the stand-in device on PyTorch's stream. The norm of the gradients is read
before they are reduced, as Megatron's check for wrong numbers does. Faults are those of fault.h: compute, loader, hang,
exit and stop. Collectives of the loop are counted where they are made, by a communication hook;
those that DistributedDataParallel makes to set itself up are known from the model. A rank ends
after --limit seconds, whatever it hangs in.
"""
import argparse
import ctypes
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from ddp import FLOAT_BYTES, Truth, faults


class Kernel:
    """A kernel that runs for a given time: struct sim_function of tests/sim/lib/standin.h."""

    class Function(ctypes.Structure):
        _fields_ = [("magic", ctypes.c_uint64), ("kind", ctypes.c_uint64),
                    ("model", ctypes.c_void_p)]

    class Dim3(ctypes.Structure):
        _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]

    def __init__(self):
        self.function = self.Function(0x6E7473696D6B726E, 1, None)
        self.launch = ctypes.CDLL("libcudart.so.13").cudaLaunchKernel
        self.launch.argtypes = [ctypes.c_void_p, self.Dim3, self.Dim3, ctypes.c_void_p,
                                ctypes.c_size_t, ctypes.c_void_p]

    def run(self, milliseconds):
        one = self.Dim3(1, 1, 1)
        took = ctypes.c_uint64(int(milliseconds * 1e6))
        words = (ctypes.c_void_p * 1)(ctypes.addressof(took))
        stream = torch.cuda.current_stream().cuda_stream
        if self.launch(ctypes.byref(self.function), one, one, words, 0, stream) != 0:
            sys.exit("the kernel cannot be launched")


def count_setup(truth, model):
    """What DistributedDataParallel sends by itself, before the loop and after its first step.

    Unlike the loop's collectives, which are counted where they are made, these are derived and not
    observed: from the model's parameters, by what PyTorch 2.15 does (it gathers their number, compares
    their shapes, sends their values, and agrees on its buckets anew after the first step). A test that
    compares them with what was traced therefore shows that both agree with PyTorch 2.15, not that an
    independent count does. Another release may send otherwise. It holds for a model as below alone:
    all parameters float32, no buffers, one bucket.
    """
    def broadcast(count, element_bytes):
        truth.add("broadcast", "world", truth.rank, truth.size, count, element_bytes)

    parameters = list(model.parameters())
    # How many parameters each rank has: gathered, which PyTorch does as one broadcast by each rank.
    for _ in range(truth.size):
        broadcast(1, 8)
    # Their sizes and strides; their values, flattened into one; then the buckets, in the order in
    # which the gradients came: the parameters' indices and one number more, the sizes of the buckets.
    broadcast(sum(2 * parameter.dim() for parameter in parameters), 8)
    broadcast(sum(parameter.numel() for parameter in parameters), FLOAT_BYTES)
    broadcast(len(parameters) + 1, 4)
    broadcast(1, 4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--compute-ms", type=float, default=40)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--fsdp", action="store_true", help="fully_shard() in place of DistributedDataParallel; nothing is counted")
    parser.add_argument("--ahead", action="store_true", help="the host reads nothing of the device, but every 50 steps")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--faults")
    parser.add_argument("--out")
    options = parser.parse_args()

    signal.alarm(options.limit)  # nobody handles it, so the kernel ends the process
    torch.set_num_threads(1)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    truth = Truth(rank, size)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(options.width, options.width, bias=False), torch.nn.ReLU(),
        torch.nn.Linear(options.width, options.width, bias=False)).cuda()
    if options.fsdp:
        for layer in list(model.children()) + [model]:
            fully_shard(layer)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
        count_setup(truth, model)

    def hook(_, bucket):
        truth.add("all-reduce", "world", rank, size, bucket.buffer().numel())
        if not options.ahead:
            bucket.buffer().norm().item()
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / size)

    if not options.fsdp:
        model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kernel = Kernel()
    begin = shown = time.monotonic()
    shown_steps = 0
    while True:
        now = faults(options.faults, rank)
        while "hang" in now:
            time.sleep(0.01)
            now = faults(options.faults, rank)
        if "exit" in now:
            os._exit(int(now["exit"]))
        time.sleep(now.get("loader", 0) / 1e3)
        batch = torch.rand(16, options.width).cuda()
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        kernel.run(options.compute_ms * now.get("compute", 1))
        loss.backward()
        optimizer.step()
        over = (truth.steps + 1 >= options.steps if options.steps
                else time.monotonic() - begin >= options.seconds)
        reads = not options.ahead or truth.steps % 50 == 49
        if reads:
            wish = torch.tensor([1.0 if over or "stop" in now else 0.0]).cuda()
            dist.all_reduce(wish)
            truth.add("all-reduce", "world", rank, size, 1)
        truth.steps += 1
        if rank == 0 and time.monotonic() - shown >= 1:
            took = (time.monotonic() - shown) * 1e3 / (truth.steps - shown_steps)
            print(f"step {truth.steps}, {took:.1f} ms a step", flush=True)
            shown, shown_steps = time.monotonic(), truth.steps
        if reads and wish.item() > 0:
            break
    torch.cuda.synchronize()
    if options.out:
        truth.write(options.out)
    dist.destroy_process_group()
    return 0


sys.exit(main())
