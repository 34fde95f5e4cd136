# SPDX-License-Identifier: GPL-3.0-or-later
"""Gradient descent with mpi4py: each rank has its own rows, and Allreduce sums the gradients.

mpi4py 4 calls the functions with large counts, such as MPI_Allreduce_c. A step also waits 10 ms, as a
program does that reads its data. Rank 0 prints its steps once a second.
"""
import time

import numpy
from mpi4py import MPI

ROWS, COLUMNS = 2000, 500

world = MPI.COMM_WORLD
random = numpy.random.default_rng(world.rank)
data = random.standard_normal((ROWS, COLUMNS))
wanted = data @ numpy.arange(COLUMNS)
model = numpy.zeros(COLUMNS)
gradient, total = numpy.empty(COLUMNS), numpy.empty(COLUMNS)
steps, shown, shown_steps = 0, time.monotonic(), 0
while True:
    time.sleep(0.01)
    for _ in range(10):
        gradient[:] = data.T @ (data @ model - wanted)
    world.Allreduce(gradient, total)
    model -= total * (0.1 / ROWS / world.size)
    steps += 1
    now = time.monotonic()
    if world.rank == 0 and now - shown >= 1:
        print(f"step {steps}, {(now - shown) * 1e3 / (steps - shown_steps):.2f} ms a step", flush=True)
        shown, shown_steps = now, steps
