# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what PyTorch's profiler exports: one trace a rank, with its host's calls and its device's kernels.

As in a real trace, the kernels of communication say which collective they are, of which group and with how many
elements; older versions leave out the number of the call and the group's ranks.
"""
import gzip
import os

BASE = 1749084000 * 10**9  # ns
NAMES = {"AllReduce": ("allreduce", "AllReduce_Sum_bf16_RING_LL"), "AllGather": ("_allgather_base", "AllGather_RING_LL"),
         "ReduceScatter": ("_reduce_scatter_base", "ReduceScatter_Sum_bf16_RING_LL"), "send": ("send", "SendRecv"),
         "recv": ("recv", "SendRecv"), "SendRecv": ("send", "SendRecv")}
KERNELS = {"forward": ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn"),
           "backward": ("aten::mm", "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nt"),
           "optimizer": ("aten::_fused_adamw_", "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float> >"),
           "copy": ("aten::copy_", "Memcpy HtoD (Pinned -> Device)"), "mark": ("aten::zero_", "Memset (Device)")}
WAITS = {"item": ("cudaStreamSynchronize", "aten::item"), "stream": ("cudaStreamSynchronize", "c10d::barrier"),
         "device": ("cudaDeviceSynchronize", None)}
HOSTS = {"load": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "checkpoint": "torch.save"}


class Trace:
    """The events of one rank."""

    def __init__(self, rank, truth, version):
        self.job = truth.job
        self.rank = rank.number
        self.version = version
        self.pid = 4000 + 17 * rank.number
        self.device = rank.number % self.job.node_size
        node = self.job.node(rank.number)
        self.clock, self.skew = self.job.clock[node], self.job.skew[node]
        self.streams = {"compute": 7}
        self.rows = []
        self.names = {name: str(i) for i, name in enumerate(self.job.groups)}

    def span(self, begin, end):
        """Begin and duration in microseconds after BASE."""
        begin, end = (1 + time * (1 + self.skew) + self.clock for time in (begin, end))
        return f'"ts": {begin * 1e6:.3f}, "dur": {max(0.0, (end - begin) * 1e6):.3f}'

    def host(self, cat, name, begin, end, args="{}"):
        self.rows.append(f'{{"ph": "X", "cat": "{cat}", "name": "{name}", "pid": {self.pid}, "tid": {self.pid}, '
                         f'{self.span(begin, end)}, "args": {args}}}')

    def collective(self, op):
        """What a communication says of itself."""
        label = op.label
        members = self.job.groups[label["group"]]
        name = NAMES[op.name][0]
        more = ""
        if "peers" in label:
            peer = label["peers"][0][0]
            ends = (self.rank, peer) if op.name == "send" else (peer, self.rank)
            more = f', "Src Rank": {ends[0]}, "Dst Rank": {ends[1]}'
        count, size = label["nelems"], len(members)
        incoming = count // size if name == "_allgather_base" else count
        outgoing = count // size if name == "_reduce_scatter_base" else count
        text = (f'"Collective name": "{name}", "In msg nelems": {incoming}, "Out msg nelems": {outgoing}, '
                f'"Group size": {size}, "dtype": "BFloat16"{more}')
        if self.version["ranks"]:
            listed = ", ".join(map(str, members[:29])) + f", ..., {members[-1]}" if size > 30 else ", ".join(map(str, members))
            text += (f', "Process Group Name": "{self.names[label["group"]]}", '
                     f'"Process Group Description": "{label["group"]}", "Process Group Ranks": "[{listed}]"')
        if self.version["seq"]:
            text += f', "Seq": {label["seq"] + 1}'
        return text

    def launch(self, op, number):
        """The operator, its launch, and what ran on the device."""
        kind = op.name.split()[0]
        stream = self.streams.setdefault(op.stream.name, 16 + 4 * len(self.streams))
        begin, end = op.begun, op.launched
        if op.transfers:
            label, kernel = "record_param_comms", f"ncclDevKernel_{NAMES[op.name][1]}(ncclDevKernelArgsStorage<4096ul>)"
            self.host("cpu_op", label, begin + 0.2 * (end - begin), end, f'{{"External id": {number}, {self.collective(op)}}}')
        else:
            label, kernel = KERNELS[kind]
            self.host("cpu_op", label, begin + 0.2 * (end - begin), end, f'{{"External id": {number}}}')
        call = "cudaMemcpyAsync" if kernel.startswith("Memcpy") else "cudaLaunchKernel"
        self.host("cuda_runtime", call, op.called, end,
                  f'{{"External id": {number}, "cbid": 211, "correlation": {number}}}')
        cat = "gpu_memcpy" if kernel.startswith("Memcpy") else "kernel"
        more = f', {self.collective(op)}' if op.transfers else ""
        self.rows.append(f'{{"ph": "X", "cat": "{cat}", "name": "{kernel}", "pid": {self.device}, "tid": {stream}, '
                         f'{self.span(op.start, op.end)}, "args": {{"External id": {number}, "device": {self.device}, '
                         f'"context": 1, "stream": {stream}, "correlation": {number}{more}}}}}')

    def header(self):
        config = ", ".join(f'{{"pg_name": "{self.names[name]}", "pg_desc": "{name}", "backend_config": "cuda:nccl", '
                           f'"pg_size": {len(members)}, "ranks": {members}}}'
                           for name, members in self.job.groups.items() if self.rank in members)
        count = sum(self.rank in members for members in self.job.groups.values())
        return (f'{{"schemaVersion": 1, "deviceProperties": [{{"id": {self.device}, "name": "NVIDIA A100-SXM4-80GB"}}], '
                f'"distributedInfo": {{"backend": "nccl", "rank": {self.rank}, "world_size": {self.job.ranks}, '
                f'"pg_count": {count}, "pg_config": [{config}], "nccl_version": "2.21.5"}}, "displayTimeUnit": "ms", '
                f'"baseTimeNanoseconds": {BASE}, "traceEvents": [\n')


def fill(trace, rank, steps):
    number = 1000 + rank.number
    for i in range(steps):
        end = rank.steps[i + 1] if i + 1 < len(rank.steps) else rank.now
        trace.host("user_annotation", f"ProfilerStep#{i + 5}", rank.steps[i], end)
    for step, label, begin, end in rank.host:
        if not 0 <= step < steps:
            continue
        if label in HOSTS:
            trace.host("user_annotation", HOSTS[label], begin, end)
        else:
            call, operator = WAITS[label]
            number += 1
            if operator:
                trace.host("cpu_op", operator, begin - 8e-6, end + 1e-6)
            trace.host("cuda_runtime", call, begin, end, f'{{"cbid": 131, "correlation": {number}}}')
    for op in rank.ops:
        if op.step < steps:
            number += 1
            trace.launch(op, number)


def write(ranks, truth, directory):
    job = truth.job
    rng = job.stream("trace")
    version = {"ranks": rng.random() < 0.85, "seq": rng.random() < 0.4}
    packed = rng.random() < 0.5
    for rank in ranks:
        if rank.number == job.lost:
            continue
        trace = Trace(rank, truth, version)
        fill(trace, rank, job.cut[1] if job.cut and job.cut[0] == rank.number else job.steps)
        node = job.node_name(job.node(rank.number))
        name = f"{node}_{trace.pid}.{1749084000 + int(truth.ends[-1])}{100 + rank.number}.pt.trace.json"
        path = os.path.join(directory, name + (".gz" if packed else ""))
        with gzip.open(path, "wt", compresslevel=1) if packed else open(path, "w", encoding="ascii") as out:
            out.write(trace.header())
            out.write(",\n".join(trace.rows))
            out.write(f'\n], "traceName": "{name}"}}\n')
    return directory, [BASE / 1e9 + 1 + end for end in truth.ends]
