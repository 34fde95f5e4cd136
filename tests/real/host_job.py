# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that reads a batch, touches its data in memory, computes and reduces: over Gloo (PyTorch), or over Open MPI.

Its faults come from outside, except for garbage, which a rank collects while the file GARBAGE.RANK exists.

    job.py --over gloo|mpi --data FILE --garbage PREFIX [--sleep-ms N] [--burn-ms N] [--touch PREFIX] [--workers]

Rank, size and addresses are in the environment, as launchers set them. Rank 0 prints its steps once a second.
"""
import argparse
import ctypes
import gc
import mmap
import os
import threading
import queue
import time

BLOCK = 4096


class Gloo:
    def __init__(self):
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        self.dist, self.rank = dist, dist.get_rank()
        self.gradient = torch.ones(1 << 18)

    def reduce(self):
        self.dist.all_reduce(self.gradient)
        self.gradient.fill_(1.0)


class Mpi:
    """Open MPI by its C interface: the calls are those that any program makes."""

    def __init__(self):
        self.library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
        self.library.MPI_Init(None, None)
        self.world, self.double, self.sum = (
            ctypes.addressof(ctypes.c_char.in_dll(self.library, name))
            for name in ("ompi_mpi_comm_world", "ompi_mpi_double", "ompi_mpi_op_sum"))
        rank = ctypes.c_int()
        self.library.MPI_Comm_rank(ctypes.c_void_p(self.world), ctypes.byref(rank))
        self.rank, self.count = rank.value, 1 << 16
        self.mine, self.all = ((ctypes.c_double * self.count)() for _ in range(2))

    def reduce(self):
        self.library.MPI_Allreduce(self.mine, self.all, self.count, ctypes.c_void_p(self.double),
                                   ctypes.c_void_p(self.sum), ctypes.c_void_p(self.world))


class Loader:
    """Reads directly from the device, by itself or in a thread that keeps one batch ready."""

    def __init__(self, path, number, bytes_, in_thread):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, bytes_)
        self.blocks = os.fstat(self.fd).st_size // bytes_
        self.at, self.bytes = number * 7919, bytes_
        self.ready = queue.Queue(1) if in_thread else None
        if in_thread:
            threading.Thread(target=self.fill, daemon=True).start()

    def read(self):
        self.at += 1
        os.preadv(self.fd, [self.buffer], self.at % self.blocks * self.bytes)

    def fill(self):
        while True:
            self.read()
            self.ready.put(self.at)

    def take(self):
        if self.ready:
            self.ready.get()
        else:
            self.read()


def touch(path):
    """Reads a byte of every fourth page of a mapped file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        for at in range(0, len(pages), 4 * BLOCK):
            pages[at]


def burn(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total


def calibrate(ms):
    """Loops that take this long here, on an idle processor: the shortest of several tries."""
    count, best = 20000, 1e9
    for _ in range(20):
        start = time.thread_time()
        burn(count)
        best = min(best, time.thread_time() - start)
    return int(count * ms / 1e3 / best)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--over", choices=["gloo", "mpi"], required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--garbage", required=True)
    parser.add_argument("--sleep-ms", type=float, default=20)
    parser.add_argument("--burn-ms", type=float, default=0)
    parser.add_argument("--touch")
    parser.add_argument("--batch-kb", type=int, default=64)
    parser.add_argument("--workers", action="store_true")
    args = parser.parse_args()

    job = {"gloo": Gloo, "mpi": Mpi}[args.over]()
    loader = Loader(args.data, job.rank, args.batch_kb << 10, args.workers)
    touched = f"{args.touch}.{job.rank}" if args.touch else None
    count = calibrate(args.burn_ms) if args.burn_ms else 0
    garbage, steps, shown, shown_steps = None, 0, time.monotonic(), 0
    while True:
        loader.take()
        if touched:
            touch(touched)
        burn(count)
        time.sleep(args.sleep_ms / 1e3)
        if os.path.exists(f"{args.garbage}.{job.rank}"):
            garbage = garbage or [[i] for i in range(400000)]
            gc.collect()
        else:
            garbage = None
        job.reduce()
        steps += 1
        now = time.monotonic()
        if job.rank == 0 and now - shown >= 1:
            print(f"step {steps}, {(now - shown) * 1e3 / (steps - shown_steps):.2f} ms a step", flush=True)
            shown, shown_steps = now, steps


main()
