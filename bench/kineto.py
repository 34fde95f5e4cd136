#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes PyTorch profiler traces of any size, as Kineto lays them out.

    bench/kineto.py DIR [--ranks N] [--bytes N] [--layers N] [--gzip] [--slow RANK]

Each step has the operators, runtime calls, kernels, flows and Python frames of a training step, in the shares
that traces of real jobs have. Seeded: the same arguments give the same files.
"""
import argparse
import gzip
import json
import os
import random

OPERATORS = ["aten::linear", "aten::addmm", "aten::to", "aten::empty_strided", "aten::copy_", "aten::gelu",
             "autograd::engine::evaluate_function: AddmmBackward0", "aten::native_layer_norm", "aten::view"]
KERNELS = ["void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
           "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::"
           "{lambda(c10::BFloat16)#1}, at::detail::Array<char*, 2> >(int, at::detail::Array<char*, 2>)",
           "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
           "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"]


class Rank:
    """Writes the trace of one rank."""

    def __init__(self, out, rank, ranks, layers, slow):
        self.out, self.rank, self.ranks, self.layers, self.slow = out, rank, ranks, layers, slow
        self.random = random.Random(rank)
        self.us, self.id, self.seq, self.written = 4486649159395.0, 1000, 0, 0

    def put(self, text):
        self.written += self.out.write(text)

    def head(self):
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": self.ranks,
                 "ranks": list(range(self.ranks))}
        info = {"backend": "nccl", "rank": self.rank, "world_size": self.ranks, "pg_count": 1, "pg_config": [group]}
        self.put('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "name": "NVIDIA A100"}\n  ],\n'
                 f'  "distributedInfo": {json.dumps(info)},\n  "displayTimeUnit": "ms",\n'
                 '  "baseTimeNanoseconds": 1790857026000000000,\n  "traceEvents": [\n')

    def event(self, category, name, us, took, tid, args):
        self.put(f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {4711 + self.rank}, "tid": {tid},\n'
                 f'    "ts": {us:.3f}, "dur": {took:.3f},\n    "args": {{\n      {args}\n    }}\n  }},\n')

    def flow(self, phase, us):
        self.put(f'  {{\n    "ph": "{phase}", "id": {self.id}, "pid": {self.rank}, "tid": 7, "ts": {us:.3f},\n'
                 '    "cat": "ac2g", "name": "ac2g", "bp": "e"\n  },\n')

    def layer(self, done):
        """A few operators, and the kernel that they launch; returns when the device is done."""
        for _ in range(4):
            self.event("cpu_op", self.random.choice(OPERATORS), self.us, 6.2, 4711,
                       f'"External id": {self.id},"Record function id": 0, "Concrete Inputs": ["", "", "1", "None"], '
                       '"Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar", ""], '
                       '"Input Strides": [[4096, 1], [1, 4096], [], []], '
                       f'"Input Dims": [[8192, 4096], [4096, 4096], [], []], "Ev Idx": {self.id}')
            self.us += 1.5 + self.random.random()
        self.event("python_function", "torch/nn/modules/linear.py(116): forward", self.us, 14.0, 4711,
                   f'"Python parent id": {self.id - 1}, "Python id": {self.id}, "Ev Idx": {self.id}')
        self.event("cuda_runtime", "cudaLaunchKernel", self.us, 3.1, 4711,
                   f'"External id": {self.id}, "cbid": 211, "correlation": {self.id}')
        self.flow("s", self.us)
        start, took = max(done, self.us + 5), 40 + 4 * self.random.random()
        took *= 1.5 if self.rank == self.slow else 1
        self.event("kernel", self.random.choice(KERNELS), start, took, 7,
                   f'"External id": {self.id}, "queued": 0, "device": 0, "context": 1, "stream": 7, '
                   f'"correlation": {self.id},\n      "registers per thread": 72, "shared memory": 0, '
                   '"blocks per SM": 9.481481, "warps per SM": 37.925926,\n      "grid": [1024, 1, 1], '
                   '"block": [128, 1, 1], "est. achieved occupancy %": 59')
        self.flow("f", start)
        self.id += 1
        return start + took

    def all_reduce(self, start):
        self.seq += 1
        self.event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", start, 60.0,
                   20, f'"External id": {self.id}, "device": 0, "stream": 20, "correlation": {self.id}, '
                   f'"Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096, '
                   f'"Group size": {self.ranks}, "dtype": "BFloat16", "Process Group Name": "0", '
                   f'"Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": {self.seq}')
        return start + 60

    def write(self, limit):
        self.head()
        number = 0
        while self.written < limit:
            start, done = self.us, self.us
            for _ in range(self.layers):
                done = self.layer(done)
            done = self.all_reduce(done)
            self.us = max(done, self.us)
            self.event("user_annotation", f"ProfilerStep#{number}", start, self.us - start, 4711, f'"Ev Idx": {self.id}')
            number += 1
        self.put('  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n    "pid": "", "tid": "", "ts": 1\n  }\n  ],\n'
                 f'  "traceName": "rank{self.rank}.json"\n}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dir")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--bytes", type=int, default=200_000_000)
    parser.add_argument("--layers", type=int, default=60, help="of a step")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--slow", type=int, default=-1)
    arguments = parser.parse_args()
    os.makedirs(arguments.dir, exist_ok=True)
    for rank in range(arguments.ranks):
        path = os.path.join(arguments.dir, f"rank{rank}.json" + (".gz" if arguments.gzip else ""))
        opened = gzip.open(path, "wt", 6) if arguments.gzip else open(path, "w", encoding="ascii")
        with opened as out:
            Rank(out, rank, arguments.ranks, arguments.layers, arguments.slow).write(arguments.bytes)


if __name__ == "__main__":
    main()
