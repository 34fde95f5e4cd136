# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the chart by what `helm template` renders: chart.py HELM BIN. Prints TAP.

Whether a real API server takes the objects, and what runs then, is tests/cluster's business.
"""
import sys

sys.dont_write_bytecode = True

# Each adds its tests.
import every_set
import single_set
import gpu_time
import refusals
from rendering import tests


def main():
    print(f"1..{len(tests)}")
    bad = 0
    for number, one in enumerate(tests, 1):
        try:
            one()
            print(f"ok {number} - {one.__name__}")
        except (AssertionError, KeyError, StopIteration) as error:
            bad += 1
            print(f"not ok {number} - {one.__name__}\n# {type(error).__name__}: {error}")
    sys.exit(1 if bad else 0)


main()
