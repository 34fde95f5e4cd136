# SPDX-License-Identifier: GPL-3.0-or-later
"""A job drawn by chance: its layout, its sizes, and the noise of a real fleet.

Random numbers belong to a rank, a group or the job and are drawn in the order of the program, so that
the same job with and without its fault draws the same numbers.
"""
import math
import random

KINDS = {
    "straggler": ("megatron",),
    "kineto": ("ddp", "ddp", "fsdp", "megatron"),
    "systrace": ("ddp", "fsdp", "megatron", "megatron"),
}
STEPS = {"kineto": (30, 60), "straggler": (40, 120), "systrace": (100, 400)}
MOST_OPS = {"kineto": 60000, "straggler": 100000, "systrace": 120000}
PARALLEL = {  # (tp, pp, dp) of Megatron jobs
    "straggler": [(4, 1, 4), (8, 1, 8), (1, 2, 4), (2, 2, 8), (1, 4, 2), (4, 4, 4), (8, 4, 4), (4, 2, 16), (1, 1, 16),
                  (2, 8, 4), (4, 4, 8), (1, 2, 32)],
    "kineto": [(2, 1, 4), (4, 1, 2), (2, 2, 2), (2, 2, 4), (1, 4, 4), (4, 1, 4), (2, 4, 2)],
    "systrace": [(4, 1, 4), (8, 1, 2), (8, 1, 4), (4, 2, 2), (4, 2, 4), (2, 4, 4), (1, 4, 4), (8, 2, 2)],
}


def log_normal(rng, sigma):
    return math.exp(rng.gauss(0, sigma)) if sigma else 1.0


class Job:
    """All that is drawn before the first step. A rank here is a worker that writes a record."""

    def __init__(self, seed, form):
        self.seed, self.form = seed, form
        rng = self.rng = random.Random(f"{seed}/{form}/job")
        self.layout = rng.choice(KINDS[form])
        self.tp = self.pp = 1
        if self.layout == "megatron":
            self.tp, self.pp, self.dp = rng.choice(PARALLEL[form])
        else:
            self.dp = rng.choice((2, 4, 4, 8, 8, 16) if form == "kineto" else (2, 4, 8, 8, 16, 16, 32))
        self.draw_sizes(rng)
        self.draw_noise(rng)
        self.draw_events(rng)
        self.two_groups = rng.random() < 0.5  # FSDP scatters in a group of its own, beside the gathers
        self.draw_groups()
        self.fault = None
        self.streams = {}

    def draw_sizes(self, rng):
        # A table has a row per leader of a tensor group, whose members are not seen.
        self.hidden_tp = self.tp if self.form == "straggler" else 1
        if self.form == "straggler":
            self.tp = 1
        self.ranks = self.tp * self.pp * self.dp
        self.node_size = min(rng.choice((2, 4, 8, 8)), self.ranks)
        self.layers = rng.choice((2, 3) if self.layout == "megatron" else (4, 6, 8, 12))
        self.micro = self.pp * rng.choice((1, 2, 2, 3)) if self.pp > 1 else rng.choice((1, 2, 4))
        self.buckets = rng.choice((2, 3, 4, 4, self.layers))
        self.prefetch = rng.choice((1, 1, 2))
        # Device time of forward and backward of one step on one rank.
        self.step_seconds = rng.uniform(2, 12) if self.form == "straggler" else math.exp(rng.uniform(math.log(0.12), math.log(2)))
        self.transfer_share = rng.uniform(0.05, 0.3)
        self.host_share = rng.uniform(0.25, 0.8)
        self.run_ahead = rng.uniform(0.2, 1.5)  # steps
        self.load_share = rng.choice((0.002, 0.01, 0.03))
        self.sync_every = rng.choice((1, 1, 1, 10, 0))
        self.barrier = rng.random() < 0.2
        self.load_inside = rng.random() < 0.6  # the time of a forward pass holds the reading of its batch
        low, high = STEPS[self.form]
        per_step = {"ddp": 3 * self.layers + self.buckets + 4, "fsdp": 6 * self.layers + 4,
                    "megatron": self.micro * (4 + 4 * self.layers * (self.tp > 1)) + 8}[self.layout]
        self.steps = max(low, min(rng.randint(low, high), MOST_OPS[self.form] // (self.ranks * per_step)))

    def draw_noise(self, rng):
        self.jitter = rng.uniform(0.005, 0.04)  # of a rank and step
        self.kernel_jitter = rng.uniform(0.002, 0.02)
        spread = rng.uniform(0, 0.02)
        self.static = [1 + rng.uniform(0, spread) for _ in range(self.ranks)]
        self.drift = [rng.uniform(-0.01, 0.01) if rng.random() < 0.3 else 0.0 for _ in range(self.ranks)]
        self.wave = (rng.uniform(0, 0.02), rng.uniform(0.2, 2))  # of the whole job
        self.hiccup = rng.choice((0.0, 0.001, 0.003, 0.01))  # chance of a rank and step
        self.lengths = rng.uniform(0.03, 0.2) if rng.random() < 0.25 else 0.0
        self.stage_work = [1.0] * self.pp
        if self.pp > 1 and rng.random() < 0.35:
            self.stage_work[-1] = rng.uniform(1.1, 1.6)
            if rng.random() < 0.4:
                self.stage_work[0] = rng.uniform(1.05, 1.3)
        nodes = (self.ranks + self.node_size - 1) // self.node_size
        offset = rng.choice((0.0, 50e-6, 1e-3, 5e-3))
        if self.form == "straggler":
            offset = min(offset, 100e-6)
        self.clock = [rng.uniform(-offset, offset) for _ in range(nodes)]
        self.skew = [rng.uniform(-2e-6, 2e-6) for _ in range(nodes)]  # seconds per second

    def draw_events(self, rng):
        self.warm_up = rng.choice((0, 0, 1, 3)) if self.form != "straggler" else 0
        self.warm_factor = rng.uniform(1.3, 4)
        every = rng.randint(15, 60)
        self.checkpoint = every if rng.random() < 0.3 else 0
        self.checkpoint_seconds = rng.uniform(0.5, 3) * self.step_seconds
        self.checkpoint_all = rng.random() < 0.5
        self.evaluation = rng.randint(15, 80) if rng.random() < 0.2 and self.layout != "megatron" else 0
        self.lost = self.cut = None
        if rng.random() < 0.05:
            self.lost = rng.randrange(self.ranks)
        elif rng.random() < 0.05:
            self.cut = (rng.randrange(self.ranks), rng.randint(self.steps * 3 // 4, self.steps - 2))
        self.job_wide = (rng.randint(self.steps // 4, self.steps * 3 // 4), rng.uniform(1.1, 1.3)) if rng.random() < 0.1 else None

    def draw_groups(self):
        """Ranks of a tensor group are neighbours, then come data-parallel ones, then stages."""
        tp, dp, pp = self.tp, self.dp, self.pp
        self.groups = {"world": list(range(self.ranks))}
        if self.layout == "fsdp" and self.two_groups:
            self.groups["scatter"] = list(range(self.ranks))
        for p in range(pp):
            for t in range(tp):
                self.groups[f"dp{p}.{t}"] = [self.number(t, d, p) for d in range(dp)]
            for d in range(dp):
                self.groups[f"tp{p}.{d}"] = [self.number(t, d, p) for t in range(tp)]
        for d in range(dp):
            for t in range(tp):
                self.groups[f"pp{d}.{t}"] = [self.number(t, d, p) for p in range(pp)]
                self.groups[f"emb{d}.{t}"] = sorted({self.number(t, d, 0), self.number(t, d, pp - 1)})

    def number(self, t, d, p):
        return (p * self.dp + d) * self.tp + t

    def place(self, rank):
        """(t, d, p)."""
        return rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp)

    def node(self, rank):
        return rank // self.node_size

    def node_name(self, node):
        return f"10.90.3.{node + 1}" if self.form == "systrace" else f"gpu-node-{node + 1:02d}"

    def nodes(self):
        return self.node(self.ranks - 1) + 1

    def ranks_of(self, node):
        return [rank for rank in range(self.ranks) if self.node(rank) == node]

    def spans(self, members):
        return len({self.node(rank) for rank in members}) > 1

    def stream(self, *key):
        """The random numbers of this key."""
        if key not in self.streams:
            self.streams[key] = random.Random(f"{self.seed}/{self.form}/" + "/".join(map(str, key)))
        return self.streams[key]

    def uneven(self):
        """Whether the last stage has more work than the others."""
        return self.stage_work[-1] > 1

    def name(self):
        text = f"{self.layout} tp{self.tp} pp{self.pp} dp{self.dp} {self.steps} steps, {self.nodes()} nodes"
        return text + (f", lengths {self.lengths:.2f}" if self.lengths else "")
