# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a job with its fault and without, and says what the fault cost."""
import engine
import fault as faults
from job import Job
from play import Player
from programs import launches, program


class Truth:
    """What is known of a run: its fault, its cost, and when each step was over."""

    def __init__(self, job, fault, ends, base):
        self.job, self.fault, self.ends = job, fault, ends
        self.cost = 0.0
        self.why = ""
        if fault:
            since = ends[fault.begin - 1] if fault.begin else 0.0
            base_since = base[fault.begin - 1] if fault.begin else 0.0
            self.cost = (ends[fault.end - 1] - since) / (base[fault.end - 1] - base_since) - 1
            self.onset = since
            if self.cost < faults.COST:
                self.why = f"costs {100 * self.cost:.1f} %"
            elif not faults.lasts(fault, job):
                self.why = "too short"
            else:
                self.why = faults.identifiable(fault, job)

    def visible(self):
        return self.fault is not None and not self.why


def simulate(job, fault):
    player = Player(job, fault)
    starts = [job.stream("start", rank).uniform(0, 0.01) for rank in range(job.ranks)]
    # A queue of 1,024 launches holds a part of a real step, which has thousands; a kernel here is many.
    depth = max(4, int(job.run_ahead * launches(job)))
    return engine.play([program(player, rank) for rank in range(job.ranks)], starts, depth)


def run(seed, form):
    """(ranks with all that they did, truth)."""
    job = Job(seed, form)
    fault = faults.draw(job)
    base = engine.step_ends(simulate(job, None), job.steps) if fault else None
    ranks = simulate(job, fault)
    return ranks, Truth(job, fault, engine.step_ends(ranks, job.steps), base)
