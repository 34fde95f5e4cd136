# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what `neutracer analyze --json` says with the truth of a run."""
from datetime import datetime


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None


class Judgement:
    def __init__(self):
        self.found = False  # the culprit is accused
        self.coarse = False  # something larger than the culprit is, such as its node
        self.wrong = []  # accusations of the innocent
        self.classes = []
        self.delay = self.since = self.slowdown = None
        self.noted = False  # a note of severity info names it
        self.undecided = False  # an incident accuses nobody
        self.notes = []  # incidents of severity info
        self.said = []


def ranks_of(job, culprit):
    """The ranks, in the job's numbers, that a culprit is or contains."""
    scale = job.hidden_tp
    if culprit["kind"] == "rank":
        return {culprit["rank"] // scale}
    if culprit.get("ranks"):
        return {rank // scale for rank in culprit["ranks"]}
    found = set()
    for name in (culprit.get("node"), culprit.get("peer"), culprit.get("name")):
        for node in range(job.nodes()):
            if name and job.node_name(node) in name:
                found |= set(job.ranks_of(node))
    return found


def matches(truth, culprit):
    """found, coarse or wrong."""
    fault, ranks = truth.fault, ranks_of(truth.job, culprit)
    if fault is None or not ranks & fault.ranks:
        return "wrong"
    kind = culprit["kind"]
    if fault.kind == "nic":
        return "found"
    if fault.kind in ("node", "stage"):
        return "found" if kind in ("rank", "node", "stage") and ranks <= fault.ranks else "coarse"
    return "found" if ranks == fault.ranks else "coarse"


def step_of(clock, moment):
    return next((i for i, end in enumerate(clock) if end >= moment), len(clock))


def judge(truth, clock, document):
    """clock[i]: when step i ended, in the seconds of the document."""
    result = Judgement()
    begin = seconds(document["start"])
    clock = [begin + end for end in clock] if clock and clock[0] < 1e8 and begin < 1e8 else clock
    for incident in document["incidents"]:
        kinds = ", ".join(f"{c['kind']} {c['rank'] if c['kind'] == 'rank' else c.get('name') or c['node'] or c.get('ranks')}"
                          for c in incident["culprits"])
        text = f"{incident['severity']} {incident['class']} {kinds} x{incident['slowdown'] or 0:.2f}"
        result.said.append(f"{text}: {incident['summary']}")
        if incident["severity"] == "info":
            result.notes.append(incident["class"])
            result.noted |= any(matches(truth, culprit) == "found" for culprit in incident["culprits"])
            continue
        result.undecided |= not incident["culprits"]
        verdicts = [matches(truth, culprit) for culprit in incident["culprits"]]
        result.wrong += [text] * verdicts.count("wrong")
        result.coarse |= "coarse" in verdicts
        if "found" in verdicts and not result.found:
            result.found = True
            result.slowdown = incident["slowdown"]
            result.since = step_of(clock, seconds(incident["since"])) - truth.fault.begin
            result.delay = step_of(clock, seconds(incident["seen"])) - truth.fault.begin
        if "found" in verdicts:
            result.classes.append(incident["class"])
    return result


def class_is_right(truth, classes):
    """A table holds no host: what its host loses is in the time of a computation."""
    right = {truth.fault.cls()}
    if truth.job.form == "straggler" and truth.fault.kind == "load":
        right.add("compute")
    if truth.fault.kind == "node":
        right.add("node")
    if truth.fault.kind == "stage":
        right.add("imbalance")
    return bool(right & set(classes))
