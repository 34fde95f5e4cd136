#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays jobs with simulators that share nothing with the detector, and scores `neutracer analyze`.

`engine` plays the operations of all ranks as events; `streams` has a model of its own, with hosts, queues and streams.
Prints a line for each missed fault and each wrong accusation, and a table of the format.
Exits with 0, 2 if the command line is wrong, 3 if a figure is below its gate.
"""
import argparse
import concurrent.futures
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import truth_check
import kineto
import markers
import run
import streams.run
import table

WRITERS = {"straggler": table.write, "kineto": kineto.write, "systrace": markers.write}
GENERATORS = {"engine": (run.run, WRITERS), "streams": (streams.run.run, streams.run.WRITERS)}


def one(seed, args):
    """Plays a run and has it judged. Returns what the report needs."""
    begin = time.time()
    play, writers = GENERATORS[args.generator]
    played, truth = play(seed, args.format)
    if args.keep:
        directory = os.path.join(args.keep, f"{args.format}-{seed}")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
    else:
        directory = tempfile.mkdtemp(prefix="neutracer-foreign-")
    try:
        path, clock = writers[args.format](played, truth, directory)
        del played
        written = time.time() - begin
        done = subprocess.run([args.bin, "analyze", "--json", path], capture_output=True, text=True, check=False)
    finally:
        if not args.keep:
            shutil.rmtree(directory, ignore_errors=True)
    text = truth.job.name() + ("; " + truth.fault.name() if truth.fault else "; nobody")
    text += f", cost {100 * truth.cost:.1f} %" if truth.fault else ""
    if done.returncode != 0:
        return {"seed": seed, "text": text, "failed": done.stderr.strip() or f"exit status {done.returncode}"}
    result = truth_check.judge(truth, clock, json.loads(done.stdout))
    return {
        "seed": seed, "text": text, "failed": None, "kind": truth.fault.kind if truth.fault else "nobody",
        "visible": truth.visible(), "hidden": getattr(truth, "hidden", ""), "why": truth.why, "found": result.found, "coarse": result.coarse,
        "wrong": result.wrong, "notes": result.notes, "noted": result.noted, "undecided": result.undecided, "said": result.said, "cost": truth.cost,
        "right": truth_check.class_is_right(truth, result.classes) if result.found else None,
        "delay": result.delay, "since": result.since, "slowdown": result.slowdown,
        "begin": begin_of(truth.fault), "wide": truth.job.job_wide is not None, "uneven": truth.job.uneven(), "seconds": (written, time.time() - begin),
    }


def begin_of(fault):
    """How it begins: a ramp costs nothing at first, and what comes and goes may not come for some steps."""
    if not fault:
        return None
    return "ramp" if fault.shape == "ramp" else "intermittent" if fault.hits else "sudden"


def needless(row):
    """Notes of a run in which nothing happened that is worth one."""
    if row["kind"] != "nobody":
        return 0
    right = {"job-wide"} if row["wide"] else set()
    return sum(1 for note in row["notes"] if note not in right | ({"imbalance"} if row["uneven"] else set()))


def line(row, args):
    """One line for a run that is not as it should be, with what repeats it."""
    if row["failed"]:
        word, more = "FAILED", row["failed"]
    elif row["wrong"]:
        word, more = "WRONG", "; ".join(row["said"])
    elif row["visible"] and not row["found"]:
        word, more = "COARSE" if row["coarse"] else "MISSED", "; ".join(row["said"]) or "no incident"
    else:
        word, more = "ok", (row["why"] + "; " if row["why"] else "") + "; ".join(row["said"])
        if not args.verbose:
            return None
    again = f"{sys.argv[0]} --seeds {row['seed']} --format {args.format} --generator {args.generator} --bin {args.bin}"
    more += f"; after {row['delay']} steps" if row["found"] and row["delay"] is not None else ""
    return f"{word} {row['text']}\n    said: {more}\n    {again}"


def share(part, whole):
    return f"{part}/{whole} = {100 * part / whole:.1f} %" if whole else "0/0"


def median(values, form="{:.1f}"):
    values = [value for value in values if value is not None]
    return form.format(statistics.median(values)) if values else "-"


def ninth_of_ten(values):
    """The nearest rank of the 90th percentile."""
    values = sorted(value for value in values if value is not None)
    return f"{values[math.ceil(0.9 * len(values)) - 1]:.0f}" if values else "-"


def report(rows, args):
    """The table. Returns (recall, precision)."""
    failed = [row for row in rows if row["failed"]]
    rows = [row for row in rows if not row["failed"]]
    visible = [row for row in rows if row["visible"]]
    found = [row for row in visible if row["found"]]
    accused = [row for row in rows if row["found"] or row["coarse"] or row["wrong"]]
    wrong = [row for row in rows if row["wrong"]]
    print(f"== {args.format}" + (f" by {args.generator}" if args.generator != "engine" else ""))
    print(f"runs              {len(rows)}, failed {len(failed)}, faults {sum(r['kind'] != 'nobody' for r in rows)}")
    print(f"visible, found    {share(len(found), len(visible))} (coarse {sum(r['coarse'] and not r['found'] for r in visible)})")
    if args.generator == "streams":
        plain = [row for row in visible if not row["hidden"]]
        print(f"  that records tell {share(sum(row['found'] for row in plain), len(plain))}")
    print(f"accused, wrong    {len(accused)}, {len(wrong)}; precision {share(len(accused) - len(wrong), len(accused))}")
    print(f"class right       {share(sum(bool(r['right']) for r in found), len(found))}")
    print(f"missed, but noted {sum(not r['found'] and r['noted'] for r in visible)} by severity info, "
          f"{sum(not r['found'] and r['undecided'] for r in visible)} without a culprit")
    print(f"needless notes    {sum(needless(r) for r in rows)} in {sum(needless(r) > 0 for r in rows)} runs")
    print(f"steps to verdict  median {median([r['delay'] for r in found], '{:.0f}')}, "
          f"90 % within {ninth_of_ten([r['delay'] for r in found])}, error of since {median([abs(r['since']) for r in found], '{:.0f}')}")
    for begin in ("sudden", "intermittent", "ramp"):
        delays = [r["delay"] for r in found if r["begin"] == begin]
        if delays:
            print(f"  {begin:14s}  median {median(delays, '{:.0f}')}, 90 % within {ninth_of_ten(delays)} ({len(delays)})")
    error = [abs(r["slowdown"] / (1 + r["cost"]) - 1) * 100 for r in found if r["slowdown"]]
    print(f"slowdown          median error {median(error)} %, 90 % within {ninth_of_ten(error)} %, most {max(error, default=0):.1f} %")
    for kind in sorted({row["kind"] for row in visible}):
        mine = [row for row in visible if row["kind"] == kind]
        print(f"  {kind:14s}  {share(sum(r['found'] for r in mine), len(mine))}")
    recall = len(found) / len(visible) if visible else 1.0
    precision = 1 - len(wrong) / len(accused) if accused else 1.0
    return (0.0 if failed else recall), precision


def seeds_of(text):
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=range(1, 21), metavar="A..B")
    parser.add_argument("--format", choices=sorted(WRITERS), required=True)
    parser.add_argument("--generator", choices=sorted(GENERATORS), default="engine")
    parser.add_argument("--bin", default="build/release/bin/neutracer", metavar="PATH")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", metavar="DIR", help="keep the input there, in FORMAT-SEED")
    parser.add_argument("--min-recall", type=float, default=0, metavar="SHARE")
    parser.add_argument("--min-precision", type=float, default=0, metavar="SHARE")
    parser.add_argument("--verbose", action="store_true", help="print a line for each run")
    args = parser.parse_args()
    if not os.access(args.bin, os.X_OK):
        parser.error(f"{args.bin} cannot be executed")
    rows = []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for row in pool.map(one, args.seeds, [args] * len(args.seeds)):
            rows.append(row)
            text = line(row, args)
            if text:
                print(text, flush=True)
    recall, precision = report(rows, args)
    if recall < args.min_recall or precision < args.min_precision:
        print(f"below the gate: recall {recall:.3f}, precision {precision:.3f}")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
