#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slow-down of a loop or a job by an agent that was started and stopped in turn: bench/governor.sh."""

import statistics
import sys

AIM = 2.0  # percent
SETTLED = 3  # the second after the start of the agent from which the aim holds


def phases(spin, marks):
    """What each second says of cost, as (name, [cost]) in the order of the marks.

    Of a loop: the cost of a call in calls that are not probed. Of a job: the mean of its steps but for stalls.
    """
    with open(spin, encoding="ascii") as file:
        fields = [line.split() for line in file if line.startswith(("hot ", "step "))]
    seconds = [float(field[3]) / float(field[4]) if field[0] == "hot" else float(field[6]) for field in fields]
    with open(marks, encoding="ascii") as file:
        begins = [(name, int(second)) for name, second in map(str.split, file)]
    ends = [second for _, second in begins[1:]] + [len(seconds)]
    # The second in which a phase begins belongs to two.
    return [(name, seconds[begin:end - 1]) for (name, begin), end in zip(begins, ends)]


def main():
    spin, marks, *loop = sys.argv[1:]
    found = phases(spin, marks)
    bare = [ns for name, ns in found if name == "bare"]
    rounds = []
    for before, with_agent, behind in zip(bare, (ns for name, ns in found if name == "with"), bare[1:]):
        alone = statistics.median(before + behind)
        rounds.append([100 * (ns / alone - 1) for ns in with_agent])
    noise = [100 * (statistics.median(a) / statistics.median(b) - 1) for a, b in zip(bare, bare[1:])]
    by_second = [statistics.median(at) for at in zip(*rounds)]
    settled = [slow for slows in rounds for slow in slows[SETTLED - 1:]]
    median = statistics.median(settled)
    quartiles = statistics.quantiles(settled, n=4)
    alone = statistics.median(ns for part in bare for ns in part)
    if loop:
        function, threads = loop
        print(f"{function}, {threads} thread{'s' if threads != '1' else ''}: {alone:.3f} of a call that is not probed, "
              "without the agent")
        if alone > 2:
            print("  WARNING: so much without our agent: another one probes it, the figures are void")
    else:
        print(f"job with 17 probed calls a step: {1000 * alone:.0f} us a step without the agent")
    print("  slow-down in %, by second: " + " ".join(f"{slow:.1f}" for slow in by_second[:10]))
    print(f"  from second {SETTLED} on: median {median:.2f} %, quartiles {quartiles[0]:.1f} and {quartiles[2]:.1f} "
          f"(aim: under {AIM:.0f}): {'met' if median < AIM else 'missed'}")
    print("  without the agent, one round against the next: " + " ".join(f"{part:.1f}" for part in noise) + " %")
    return median >= AIM


if __name__ == "__main__":
    sys.exit(main())
