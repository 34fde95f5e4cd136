# SPDX-License-Identifier: GPL-3.0-or-later
"""A job drawn by chance: its layout, its sizes, its noise, and how it is recorded."""
import random

NODE = 8  # devices
LAYOUTS = ("ddp", "fsdp", "hsdp", "megatron")
# What happens in a job without a fault. None of it is anybody's fault.
HABITS = ("plain", "plain", "lengths step", "throttled", "lengths", "hiccups", "checkpoint", "evaluation", "spread")


class Job:
    """All that is drawn before the first step. A rank here is a worker that writes a record."""

    def __init__(self, seed, form):
        self.seed, self.form = seed, form
        self.rng = rng = random.Random(f"{form}{seed}")
        self.healthy = seed % 2 == 0
        self.habit = rng.choice(HABITS)
        self.job_wide = None  # (first step, factor)
        self.checkpoint = self.evaluation = 0  # every so many steps
        self.tp = self.pp = 1
        self.hidden_tp = 1
        self.last_work = 0.0  # of the last stage, beyond that of the others
        self.clock, self.names, self.cycles, self.is_lost = 0.0, "host", None, False
        self.draw_noise(rng)
        if form == "straggler":
            self.draw_table(rng)
        else:
            self.draw_devices(rng)
            self.draw_recording(rng)
        self.node_size = max(1, NODE // self.hidden_tp)
        if self.healthy:
            self.draw_habit(rng)
        self.draw_groups()
        rng = random.Random(f"s{seed}")
        self.static = [1 + rng.uniform(-1, 1) * self.spread for _ in range(self.ranks)]
        self.starts = [rng.uniform(0, 0.01 if form == "straggler" else 0.02) for _ in range(self.ranks)]

    # ---- drawing -----------------------------------------------------------------------------------

    def draw_noise(self, rng):
        self.jitter = rng.choice((0.01, 0.015, 0.03))  # of a kernel
        self.spread = rng.choice((0.01, 0.02, 0.03))  # of the cards, for good
        self.hiccup = rng.choice((0.0002, 0.0005, 0.001))  # chance of a kernel
        self.lengths = rng.choice((0, 0, 0.01, 0.03))  # sigma of the work of a rank and step

    def draw_table(self, rng):
        """A table has a row for each leader of a tensor group, whose members are not seen."""
        self.layout = "pipeline"
        self.dp, self.pp = rng.choice((2, 4, 8)), rng.choice((1, 2, 4))
        self.hidden_tp = rng.choice((2, 4, 8))
        self.micro = rng.choice((4, 8, 12))
        self.steps = rng.randint(30, 50)
        self.forward_seconds = rng.uniform(0.04, 0.3)  # of a stage and micro-batch
        self.last_work = rng.choice((0, 0, 0.3, 0.6))
        if self.dp * self.pp < 4:
            self.dp = 4
        self.ranks = self.dp * self.pp
        if rng.random() < 0.25:
            self.checkpoint = 12
        self.lengths = rng.choice((0, 0, 0.03, 0.15))  # of a replica's micro-batch

    def draw_devices(self, rng):
        is_long = self.form == "systrace"
        self.layout = rng.choice(LAYOUTS)
        is_3d = self.layout == "megatron"
        if self.layout != "ddp" or rng.random() < 0.7:
            self.ranks = rng.choice((16, 32) if is_3d else (16, 16, 24, 32))
        else:
            self.ranks = NODE
        self.steps = rng.randint(60, 100) if is_long else rng.randint(30, 45)
        self.layer_seconds = (rng.uniform(8, 20) if is_long else rng.uniform(4, 9)) * 1e-3  # forward
        self.layers = rng.choice((4, 6, 8))
        self.passes = 1 if is_3d else rng.choice((1, 1, 2))  # whose gradients are added up
        self.sync_every = rng.choice((1, 1, 10, 0))
        self.transfer_share = rng.choice((0.2, 0.35, 0.5))
        self.host_share = rng.choice((0.15, 0.3, 0.5))
        self.is_ahead = rng.random() < 0.5  # FSDP gathers before the layer behind is computed; the host limits how far
        if is_3d:
            self.tp, self.pp, self.micro = rng.choice((2, 4, 8)), rng.choice((1, 2, 2)), rng.choice((2, 4))
            self.layers = 3
            self.last_work = rng.choice((0, 0, 1.0))
            self.steps = rng.randint(50, 70) if is_long else rng.randint(30, 40)
            if self.ranks == 32 and self.tp == 2:
                self.tp = 4
            self.layer_seconds /= 2
        self.dp = self.ranks // self.tp // self.pp
        if rng.random() < 0.25:
            self.checkpoint = 14
        elif rng.random() < 0.25:
            self.evaluation = 11

    def draw_recording(self, rng):
        self.clock = rng.choice((0, 1e-3, 5e-3))  # how far the nodes' clocks may be off
        if self.form == "kineto":
            self.names = rng.choice(("host", "host", "rank"))
            if rng.random() < 0.3:
                third = self.steps // 3
                self.cycles = [(1, third - 3), (third, 2 * third - 2), (2 * third, self.steps)]
        else:
            self.clock = rng.choice((0, 5e-3, 0.3))
        self.is_lost = rng.random() < 0.15  # one record, not the culprit's

    def draw_habit(self, rng):
        if self.habit == "lengths step":
            self.job_wide = (self.steps // 2, rng.uniform(1.15, 1.6))
        elif self.habit == "throttled":
            self.job_wide = (self.steps // 2, rng.uniform(1.1, 1.3))
        elif self.habit == "lengths":
            self.lengths = rng.choice((0.08, 0.15, 0.25))
        elif self.habit == "hiccups":
            self.hiccup = 0.004
        elif self.habit == "checkpoint":
            self.checkpoint = 10
        elif self.habit == "evaluation":
            self.evaluation = 7
        elif self.habit == "spread":
            self.spread = 0.04

    def draw_groups(self):
        """Members of each group, and what PyTorch and Megatron call it."""
        everyone = range(self.ranks)
        self.groups, self.titles = {}, {}
        self.add("0", "default_pg", everyone)
        if self.layout == "hsdp":
            for node in range(self.nodes()):
                self.add(f"n{node}", "mesh_shard", self.ranks_of(node))
            for device in range(NODE):
                self.add(f"d{device}", "mesh_replicate", everyone[device::NODE])
        elif self.layout == "megatron":
            for p in range(self.pp):
                for d in range(self.dp):
                    self.add(f"t{p}.{d}", "TENSOR_MODEL_PARALLEL_GROUP", [self.number(t, d, p) for t in range(self.tp)])
                for t in range(self.tp):
                    self.add(f"d{p}.{t}", "DATA_PARALLEL_GROUP", [self.number(t, d, p) for d in range(self.dp)])
            for d in range(self.dp):
                for t in range(self.tp):
                    self.add(f"p{d}.{t}", "PIPELINE_MODEL_PARALLEL_GROUP", [self.number(t, d, p) for p in range(self.pp)])

    def add(self, name, title, members):
        self.groups[name], self.titles[name] = tuple(members), title

    # ---- places ------------------------------------------------------------------------------------

    def number(self, t, d, p):
        return (p * self.dp + d) * self.tp + t

    def place(self, rank):
        """(t, d, p)."""
        return rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp)

    def node(self, rank):
        return rank // self.node_size

    def nodes(self):
        return self.node(self.ranks - 1) + 1

    def node_name(self, node):
        return f"10.0.0.{node + 1}" if self.form == "systrace" else f"node{node:02d}"

    def ranks_of(self, node):
        return [rank for rank in range(self.ranks) if self.node(rank) == node]

    # ---- what a report says of it ------------------------------------------------------------------

    def uneven(self):
        """Whether the work differs between stages, or by turns between ranks, by more than noise."""
        return self.last_work > 0 or self.lengths >= 0.08

    def name(self):
        layout = f"{self.layout} {self.ranks} ranks tp{self.tp * self.hidden_tp} pp{self.pp}"
        return f"{layout}, {self.steps} steps" + (f", {self.habit}" if self.healthy else "")
