# SPDX-License-Identifier: GPL-3.0-or-later
"""What the PyTorch jobs share: faults, and the counts that a rank makes of its own calls."""
import collections
import json
import os
import pathlib

FLOAT_BYTES = 4


def faults(path, rank):
    found = {}
    try:
        lines = pathlib.Path(path).read_text().splitlines() if path else []
    except OSError:
        lines = []
    for line in lines:
        word = line.split()
        if len(word) >= 2 and word[1] in ("all", str(rank)):
            found[word[0]] = float(word[2]) if len(word) > 2 else 1.0
    return found


class Truth:
    def __init__(self, rank, size):
        self.rank, self.size, self.steps = rank, size, 0
        self.rows = collections.Counter()
        self.moved = collections.Counter()

    def add(self, operation, group, comm_rank, size, count, element_bytes=FLOAT_BYTES):
        row = (operation, group, comm_rank, size)
        self.rows[row] += 1
        self.moved[row] += count * element_bytes

    def write(self, directory):
        text = json.dumps({
            "rank": self.rank, "size": self.size, "pid": os.getpid(), "steps": self.steps,
            "launches": 0,
            "ops": [{"op": row[0], "comm": row[1], "comm_rank": row[2], "size": row[3],
                     "calls": calls, "bytes": self.moved[row]} for row, calls in self.rows.items()],
        })
        hidden = pathlib.Path(directory, f".rank-{self.rank}.json")
        hidden.write_text(text)
        hidden.rename(pathlib.Path(directory, f"rank-{self.rank}.json"))
