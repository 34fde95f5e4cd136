# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a job with its fault and without, and says what the fault cost."""
import random

from . import fault as faults
from . import kineto, systrace, table
from .job import Job
from .play import Play
from .stages import Stages

WRITERS = {"straggler": table.write, "kineto": kineto.write, "systrace": systrace.write}
COST = 0.05  # of the step time: what costs less need not be found
TRIES = 6


class Truth:
    """What is known of a run: its fault, its cost, when each step was over, and whose record is lost."""

    def __init__(self, job, fault, cost, ends):
        self.job, self.fault, self.cost, self.ends = job, fault, cost, ends
        self.why = f"costs {100 * cost:.1f} %" if fault and cost < COST else ""
        self.hidden = faults.hidden(fault, job) if fault else ""
        self.lost = None
        if job.is_lost:
            culprits = fault.ranks if fault else ()
            self.lost = random.Random(job.seed).choice([rank for rank in range(job.ranks) if rank not in culprits])

    def visible(self):
        return self.fault is not None and not self.why


def cost_of(fault, seconds, healthy):
    """How much longer its steps take than without it."""
    return sum(seconds[fault.begin:fault.end]) / sum(healthy[fault.begin:fault.end]) - 1


def run(seed, form):
    """(the recording of what all ranks did, truth). A fault grows until it costs enough."""
    job = Job(seed, form)
    simulate = Stages if form == "straggler" else Play
    play = simulate(job, None)
    healthy = play.step_seconds()
    fault = faults.draw(job, sum(healthy[2:]) / len(healthy[2:]))
    cost = 0.0
    for i in range(TRIES if fault else 0):
        if i:
            fault.grow()
        play = simulate(job, fault)
        cost = cost_of(fault, play.step_seconds(), healthy)
        if cost >= COST:
            break
    return play, Truth(job, fault, cost, play.step_ends())
