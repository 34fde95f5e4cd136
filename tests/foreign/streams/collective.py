# SPDX-License-Identifier: GPL-3.0-or-later
"""A collective, or one message, on all ranks that take part."""


class Collective:
    """It ends for all members once the last has started and the data have moved."""

    __slots__ = ("name", "group", "number", "members", "elements", "seconds", "rng", "starts", "ends", "waiters")

    def __init__(self, name, group, number, members, elements, seconds, rng):
        self.name, self.group, self.number = name, group, number
        self.members = members  # of a message: (sender, receiver)
        self.elements = elements
        self.seconds = seconds
        self.rng = rng
        self.starts = {}
        self.ends = None
        self.waiters = []

    def join(self, rank, start):
        """True if this member was the last."""
        self.starts[rank] = start
        if len(self.starts) < len(self.members):
            return False
        end = max(self.starts.values()) + self.seconds
        self.ends = {member: end + self.rng.uniform(0, 8e-6) for member in sorted(self.members)}
        return True
