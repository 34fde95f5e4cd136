# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a table of operation times in the columns of ByteDance's StragglerAnalysis.

Times count from the first operation of the step. The numbers of the steps have gaps, as not all are recorded.
"""
import os
import random

HEADER = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
WITH_CHUNK = ("forward-compute", "backward-compute", "gc", "params-all-gather", "grads-reduce-scatter")


def write(stages, truth, directory):
    job = truth.job
    rng = random.Random(f"w{job.seed}")
    numbers = [16]
    while len(numbers) < job.steps:
        numbers.append(numbers[-1] + rng.choice((1, 1, 2, 5, 9)))
    begins, _ = stages.bounds()
    path = os.path.join(directory, f"trace-{job.seed}.csv")
    with open(path, "w", encoding="ascii") as out:
        out.write(HEADER)
        for worker in sorted(stages.workers, key=lambda worker: (worker.d, worker.p)):
            where = f"{worker.d},{worker.p},{worker.number * job.hidden_tp}"
            for step, name, start, end, number, micro in sorted(worker.ops, key=lambda op: (op[0], op[1], op[4])):
                is_compute = name.endswith("-compute")
                chunk = 0 if name in WITH_CHUNK and name != "gc" else -1
                out.write(f"{where},{numbers[step]},{name},{start - begins[step]:.6f},{end - start:.6f},{number},{chunk},"
                          f"{micro},{worker.p if is_compute else -1}\n")
    return path, truth.ends
