#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""scikit-learn's DBSCAN on what bench/detect.c gave its own.

    detect_sklearn.py FILE VALUES EPS PAIRS

Prints: median CPU milliseconds, and "equal" or "differ" of the clusters; "- -" where it is not
installed or would need more memory than MOST_BYTES.
"""

import array
import statistics
import sys
import time

MOST_BYTES = 1 << 30  # it keeps the numbers of all neighbours of all points, eight bytes each
ROUNDS = 5


def rename(labels):
    """Clusters by their first members, so that names do not matter."""
    names = {}
    return [names.setdefault(label, len(names)) for label in labels]


def main():
    path, count, eps, pairs = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    try:
        import numpy
        from sklearn.cluster import DBSCAN
    except ImportError:
        print("- not-installed")
        return
    if pairs * 8 > MOST_BYTES:
        print(f"- {pairs * 8 / 2**30:.0f}-GB")
        return
    given = array.array("d")
    with open(path, "rb") as file:
        given.fromfile(file, 2 * count)
    values = numpy.array(given[:count]).reshape(-1, 1)
    spent = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        labels = DBSCAN(eps=eps, min_samples=1).fit_predict(values)
        spent.append((time.process_time() - begin) * 1000)
    same = rename(labels.tolist()) == rename(given[count:])
    print(f"{statistics.median(spent):.1f} {'equal' if same else 'differ'}")


main()
