#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the detectors with independent implementations of the same algorithms.

    compare.py dbscan PROGRAM          labels of random inputs: scikit-learn's DBSCAN
    compare.py ksigma PROGRAM FILE...  recorded series: k-sigma written from its definition

PROGRAM is built from detector_output.c. The exit status is 77 if scikit-learn is not installed.

NT_MORE=1: 1,000 inputs instead of 250, and each series with every set of parameters instead of with one.
"""

import array
import csv
import gzip
import math
import os
import random
import statistics
import subprocess
import sys

MORE = os.environ.get("NT_MORE") == "1"
INPUTS = 1000 if MORE else 250
MANY = 120  # points of an input
NEAR = 1e-9  # of two ways to compute the same
ROUNDED = 1e-12


def ask(program, what, numbers):
    given = array.array("d", numbers).tobytes()
    told = subprocess.run([program, what], input=given, stdout=subprocess.PIPE, check=True).stdout
    answer = array.array("d")
    answer.frombytes(told)
    return answer


# ---- DBSCAN --------------------------------------------------------------------------------------


def draw_points(rng, dimensions):
    """Heaps, evenly spread, on a grid (distances of exactly eps), with doubles."""
    n = rng.randint(1, MANY)
    kind = rng.randrange(4)
    if kind == 0:
        centres = [[rng.uniform(-5, 5) for _ in range(dimensions)] for _ in range(rng.randint(1, 4))]
        width = rng.uniform(0.05, 1)
        return [[rng.gauss(c, width) for c in rng.choice(centres)] for _ in range(n)], rng.uniform(0.05, 1.5)
    if kind == 1:
        return [[rng.uniform(0, 1) for _ in range(dimensions)] for _ in range(n)], rng.uniform(0.005, 0.5)
    if kind == 2:
        side = rng.randint(2, 12)
        return [[rng.randrange(side) / 4 for _ in range(dimensions)] for _ in range(n)], rng.randint(1, 6) / 4
    few = [[rng.gauss(0, 1) for _ in range(dimensions)] for _ in range(rng.randint(1, 9))]
    return [list(rng.choice(few)) for _ in range(n)], rng.uniform(0.01, 2)


def compare_dbscan(program):
    try:
        import numpy
        from sklearn.cluster import DBSCAN
    except ImportError as error:
        print(f"skip: sklearn: {error}")
        return 77
    rng = random.Random(20261121)
    wrong = clusters = noise = 0
    numbers, wanted = {"dbscan": [], "sorted": []}, {"dbscan": [], "sorted": []}
    for i in range(INPUTS):
        dimensions = 1 if i < INPUTS // 2 else rng.randint(2, 6)
        points, eps = draw_points(rng, dimensions)
        ways = ["dbscan"]
        if dimensions == 1 and i % 4:
            points.sort()
            ways.append("sorted")
        min_samples = rng.randint(1, 8)
        labels = DBSCAN(eps=eps, min_samples=min_samples).fit_predict(numpy.array(points)).tolist()
        clusters += max(labels) + 1
        noise += labels.count(-1)
        for way in ways:
            numbers[way] += [dimensions, len(points), eps, min_samples]
            numbers[way] += [x for point in points for x in point]
            wanted[way].append(labels)
    for way, all_labels in wanted.items():
        told = ask(program, way, numbers[way])
        at = 0
        for i, labels in enumerate(all_labels):
            mine = [int(x) for x in told[at : at + len(labels)]]
            at += len(labels)
            if mine != labels:
                wrong += 1
                print(f"{way}: input {i}: {mine} is not {labels}")
        if at != len(told):
            wrong += 1
            print(f"{way}: {len(told)} labels instead of {at}")
    print(f"{INPUTS} inputs, {clusters} clusters, {noise} points of noise: {wrong} wrong")
    return 1 if wrong or not clusters or not noise else 0


# ---- k-sigma -------------------------------------------------------------------------------------

UP, DOWN, BOTH = 0, 1, 2
RULES = [
    # window, warm_up, n_sigma, bias, abs_bias, low, high, min_width, direction, mean
    (20, 20, 3.0, 0.0, 0.0, -math.inf, math.inf, 0.01, UP, False),
    (20, 10, 4.0, 0.1, 0.0, -math.inf, math.inf, 0.0, UP, True),
    (64, 30, 2.0, 0.0, 0.05, 0.1, 0.9, 0.0, BOTH, False),
    (5, 2, 1.5, 0.2, 0.01, -math.inf, 0.8, 0.02, DOWN, True),
    (40, 40, 3.0, 0.0, 0.0, -math.inf, math.inf, 0.0, BOTH, True),
]


def is_near(a, b):
    return a == b or abs(a - b) <= NEAR * max(1, abs(a), abs(b))


def judge(rules, history, value):
    """(ready, abnormal, centre, width, z), and whether rounding may turn the second over."""
    _, warm_up, n_sigma, bias, abs_bias, low, high, min_width, direction, mean = rules
    outside = value < low or value > high
    if len(history) < warm_up:
        return (False, outside, 0.0, 0.0, 0.0), False
    if mean:
        centre, width = statistics.fmean(history), statistics.pstdev(history)
    else:
        centre = statistics.median(history)
        width = 1.4826 * statistics.median(abs(x - centre) for x in history)
    width = max(width, min_width * abs(centre))
    away = value - centre
    z = away / width if width > 0 else math.copysign(1e9, away) if away else 0.0
    harm = {UP: away, DOWN: -away, BOTH: abs(away)}[direction]
    least = max(bias * abs(centre), abs_bias)
    beyond = harm > n_sigma * width and harm >= least and harm > 0
    limits = [limit for limit in (n_sigma * width, least) if limit > 0]
    narrow = any(abs(harm - limit) <= ROUNDED * limit for limit in limits)
    narrow = narrow or (mean and centre != 0 and width <= ROUNDED * abs(centre))
    return (True, outside or beyond, centre, width, z), narrow and not outside


def compare_series(name, rules, series, told):
    """How many were abnormal, and how many too near to the border to tell; None: something differs."""
    history, alarms, narrow = [], 0, 0
    for i, value in enumerate(series):
        mine = told[5 * i : 5 * i + 5]
        wanted, is_narrow = judge(rules, history, value)
        same = bool(mine[0]) == wanted[0] and is_near(mine[2], wanted[2]) and is_near(mine[3], wanted[3])
        if wanted[3] > NEAR:  # else it is what rounding leaves of nothing, and z is anything
            same = same and is_near(mine[4], wanted[4])
        if not same or (bool(mine[1]) != wanted[1] and not is_narrow):
            print(f"{name}, {rules}: value {i} is {value}: {list(mine)} is not {wanted}")
            return None
        # What one learns and the other does not would tell them apart for good.
        if not mine[1]:
            history = (history + [value])[-rules[0] :]
        alarms += wanted[1]
        narrow += is_narrow
    return alarms, narrow


def read_series(path):
    with gzip.open(path, "rt") as file:
        rows = list(csv.reader(file))
    for column, name in enumerate(rows[0]):
        if name not in ("split", "label"):
            yield f"{path}: {name}", [float(row[column]) for row in rows[1:]]


def compare_ksigma(program, paths):
    values = alarms = narrow = number = 0
    for path in paths:
        for name, series in read_series(path):
            number += 1
            for rules in RULES if MORE else [RULES[number % len(RULES)]]:
                told = ask(program, "ksigma", [*map(float, rules), len(series), *series])
                found = compare_series(name, rules, series, told)
                if found is None:
                    return 1
                values += len(series)
                alarms += found[0]
                narrow += found[1]
    print(f"{values} judgements equal, {alarms} of them abnormal, {narrow} on the border")
    return 0 if alarms and narrow < values / 2 else 1


if sys.argv[1] == "dbscan":
    sys.exit(compare_dbscan(sys.argv[2]))
sys.exit(compare_ksigma(sys.argv[2], sys.argv[3:]))
