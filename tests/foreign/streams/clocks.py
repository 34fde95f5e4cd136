# SPDX-License-Identifier: GPL-3.0-or-later
"""The clocks of the nodes, which are off and drift."""
import random

BEGIN = 1764470005  # Unix time of the job's begin, in seconds


class Clocks:
    def __init__(self, job):
        rng = random.Random(f"w{job.seed}")
        nodes = job.ranks // job.node_size + 1

        def draw(most):
            return [rng.uniform(-most, most) if job.clock else 0.0 for _ in range(nodes)]

        self.offsets, self.drifts = draw(job.clock), draw(2e-5)
        self.job = job

    def seconds(self, rank, time):
        """What the clock of a rank's node has counted since BEGIN at a time of the job."""
        node = self.job.node(rank)
        return time + self.offsets[node] + self.drifts[node] * time
