#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation test: do the unit tests notice when one line of the core is wrong?

Draws one-line mutations of the code where a silent mistake would be worst, builds each in a copy of
the tree under sanitizers, and runs the unit tests of its room. A mutant is caught when a test fails,
crashes or hangs. Mutants that do not compile, or compile to the same code, are drawn again.
"""

import argparse
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

# Files, and the unit tests that answer for them.
ROOMS = [
    (["detect/*.c", "detect/*/*.c"], ["test_detect_*"]),
    (["agent/elf*.c", "agent/insn*.c"], ["test_agent_elf*", "test_agent_insn*"]),
    (["common/bus_spool*.c", "common/spool/*.c"], ["test_common_bus*", "test_common_spool*"]),
    (["proto/wire*.c"], ["test_proto_*"]),
]
WORK = "build/mutate"
MODE = "asan"
MAKE = ["make", "-s", "SAN=1", "WERROR=0"]

# A whole number that stands alone.
CONSTANT = r"(?<![\w.])(\d+)(?![\w.])"

# What a line may become: (pattern in the code, replacement). Strings and comments are masked.
OPERATORS = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" < ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* (?=[a-z0-9(])", " / "),
    (r" / ", " * "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r" & ", " | "),
    (r" << ", " >> "),
    (r" >> ", " << "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\breturn -E[A-Z]+;", "return 0;"),
    (r"\breturn r;", "return 0;"),
    (r"\bif \((?!!)(.*)\)$", r"if (!(\1))"),
    (r"\bif \(!(\w+)\)", r"if (\1)"),
    (r"\bcontinue;", "break;"),
    (CONSTANT, lambda m: str(int(m.group(1)) + 1)),
    (r"^(\t+)(?!return|break|continue|case|goto|const|static|struct|enum|int|u?int\d|size_t|bool|double|char|nt_auto)"
     r"[\w>.*\[\]()-]+ [+|&-]?= .*;$", r"\1;"),
    (r"^(\t+)(?!return|free|nt_\w+_free|nt_\w+_release|assert|memset)\(?(?:void\) ?)?[a-z_]\w*\(.*\);$", r"\1;"),
]


# Where a change of the boundary by one has no effect: a tie of two real numbers does not happen, and
# descriptor 0 is never one of ours.
BOUNDARIES = {(r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > ")}
NO_TIE = re.compile(r"\d\.\d|\(double\)|\bNAN\b|fd [<>]")

# How much room an array is given: too little is what the sanitizers find, too much nobody should.
CAPACITY = re.compile(r"(?:\b|_)(?:cap|more|grow)(?:\b|_)")


def mask(text):
    """The text with comments and strings blanked, so that columns stay."""
    def blank(match):
        return re.sub(r"[^\n]", "\x01", match.group(0))
    return re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', blank, text, flags=re.S)


def candidates(path, text):
    """(path, line number, old line, new line) of every mutation of a file."""
    lines = text.split("\n")
    masked = mask(text).split("\n")
    depth = 0
    for number, (line, code) in enumerate(zip(lines, masked)):
        inside = depth > 0
        depth += code.count("{") - code.count("}")
        if not inside or not code.strip() or code.lstrip().startswith(("#", "case ")):
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        # Failed allocations are the business of check-oom, assertions that of nobody.
        if "ENOMEM" in line or "ENOMEM" in following or "assert(" in code or CAPACITY.search(code):
            continue
        for pattern, replacement in OPERATORS:
            if NO_TIE.search(code) and ((pattern, replacement) in BOUNDARIES or pattern == CONSTANT):
                continue
            for match in re.finditer(pattern, code):
                new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
                if "\x01" in new:
                    new = re.sub(pattern, replacement, line, count=1)
                    mutated = new
                else:
                    mutated = line[:match.start()] + new + line[match.end():]
                if mutated != line:
                    yield path, number, line, mutated


def tests_of(path):
    for sources, tests in ROOMS:
        if any(path in glob.glob(s) for s in sources):
            found = sorted({os.path.basename(f)[:-2] for t in tests for f in glob.glob(f"tests/unit/{t}.c")})
            return found
    return []


def copy_tree(target):
    """The files of the project; those that did not change keep their time."""
    files = subprocess.run(["tests/files.sh"], check=True, capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, files):
        to = os.path.join(target, name)
        with open(name, "rb") as f:
            data = f.read()
        if os.path.exists(to):
            with open(to, "rb") as f:
                if f.read() == data:
                    continue
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(name, to)
    # What is no longer in the project must not be built.
    for room in ("agent", "aggregator", "bpf", "cli", "common", "detect", "proto", "tests/unit"):
        for old in glob.glob(f"{target}/{room}/**/*.[ch]", recursive=True):
            if not os.path.exists(os.path.relpath(old, target)):
                os.unlink(old)


def make(tree, targets, jobs=1):
    return subprocess.run(MAKE + [f"-j{jobs}"] + targets, cwd=tree, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def run_test(tree, test, limit):
    """Whether a test program passes; all that it started ends with it."""
    quick = {"ASAN_OPTIONS": "symbolize=0", "UBSAN_OPTIONS": "symbolize=0"}
    with subprocess.Popen([f"build/{MODE}/test/{test}"], cwd=tree, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **quick}) as child:
        try:
            passed = child.wait(limit) == 0
        except subprocess.TimeoutExpired:
            passed = False
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return passed


def run_tests(tree, limits):
    """The first test that fails, or None. limits: seconds by test, the quickest first."""
    for test, limit in limits.items():
        if not run_test(tree, test, limit):
            return test
    return None


def machine_code(tree, path):
    """What an optimising compiler makes of a file: the same for an equivalent change it sees through."""
    obj = os.path.join(WORK, f"{os.path.basename(tree)}.o")
    built = subprocess.run(["gcc", "-std=gnu17", "-D_GNU_SOURCE", "-I.", "-Ibuild/gen", "-O2", "-g0", "-w", "-c",
                            path, "-o", os.path.abspath(obj)], cwd=tree, stderr=subprocess.DEVNULL, check=False)
    if built.returncode != 0:
        return None
    with open(obj, "rb") as f:
        return f.read()


class Worker(threading.Thread):
    def __init__(self, tree, draw):
        super().__init__(daemon=True)
        self.tree = tree
        self.draw = draw

    def run(self):
        while True:
            mutant = self.draw.next()
            if mutant is None:
                return
            self.draw.done(mutant, self.judge(*mutant))

    def judge(self, path, number, old, new):
        source = os.path.join(self.tree, path)
        obj = f"build/{MODE}/obj/{path[:-2]}.o"
        with open(source, encoding="utf-8") as f:
            text = f.read()
        good = machine_code(self.tree, path)
        lines = text.split("\n")
        assert lines[number] == old
        lines[number] = new
        try:
            with open(source, "w", encoding="utf-8") as f:
                f.write("\n".join(lines))
            code = machine_code(self.tree, path)
            if code is None:
                return "no code"
            if code == good:
                return "same code"
            tests = tests_of(path)
            if make(self.tree, [f"build/{MODE}/test/{t}" for t in tests]).returncode != 0:
                return "no code"
            limits = {t: limit for t, limit in self.draw.limits.items() if t in tests}
            return run_tests(self.tree, limits) or "SURVIVED"
        finally:
            with open(source, "w", encoding="utf-8") as f:
                f.write(text)
            make(self.tree, [obj])


class Draw:
    """Hands out mutants until enough of them counted."""

    def __init__(self, mutants, count, limits):
        self.lock = threading.Lock()
        self.mutants = iter(mutants)
        self.wanted = count
        self.running = 0
        self.limits = limits
        self.caught = 0
        self.survivors = []
        self.wake = threading.Condition(self.lock)

    def counted(self):
        return self.caught + len(self.survivors)

    def next(self):
        with self.lock:
            while self.counted() + self.running >= self.wanted and self.running:
                self.wake.wait()
            if self.counted() >= self.wanted:
                return None
            mutant = next(self.mutants, None)
            if mutant is not None:
                self.running += 1
            return mutant

    def done(self, mutant, verdict):
        path, number, old, new = mutant
        with self.lock:
            self.running -= 1
            if verdict == "SURVIVED":
                self.survivors.append(mutant)
            elif verdict not in ("no code", "same code"):
                self.caught += 1
            if verdict not in ("no code", "same code"):
                print(f"{self.counted():3}  {verdict:32} {path}:{number + 1}: {old.strip()}  →  {new.strip()}",
                      flush=True)
            self.wake.notify_all()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--need", type=int, help="default: 90 %% of the count")
    parser.add_argument("--only", default="", help="only files whose path starts so")
    args = parser.parse_args()
    need = args.need if args.need is not None else (args.count * 9 + 9) // 10

    mutants = []
    for sources, _ in ROOMS:
        for path in sorted({f for s in sources for f in glob.glob(s)}):
            if not path.startswith(args.only):
                continue
            if not tests_of(path):
                sys.exit(f"{path} has no unit test of its room")
            with open(path, encoding="utf-8") as f:
                mutants += candidates(path, f.read())
    if not mutants:
        sys.exit("nothing to mutate")
    random.Random(args.seed).shuffle(mutants)
    tests = sorted({t for path in {m[0] for m in mutants} for t in tests_of(path)})

    trees = [f"{WORK}/{i}" for i in range(min(2, os.cpu_count() or 1))]
    started = time.monotonic()
    for tree in trees:
        os.makedirs(tree, exist_ok=True)
        copy_tree(tree)
        built = make(tree, [f"build/{MODE}/test/{t}" for t in tests], jobs=os.cpu_count() or 1)
        if built.returncode != 0:
            sys.exit(f"the tree does not build:\n{built.stdout[-3000:]}")
    took = {}
    for test in tests:
        before = time.monotonic()
        if not run_test(trees[0], test, 120):
            sys.exit(f"{test} fails without a mutation")
        took[test] = time.monotonic() - before
    limits = {t: 5 + 4 * took[t] for t in sorted(took, key=took.get)}
    print(f"{len(mutants)} possible mutations, seed {args.seed}; the unmutated tree passes "
          f"({time.monotonic() - started:.0f} s)", flush=True)

    draw = Draw(mutants, args.count, limits)
    workers = [Worker(tree, draw) for tree in trees]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{draw.caught} of {draw.counted()} mutants caught, {need} wanted "
          f"({time.monotonic() - started:.0f} s)")
    return 0 if draw.counted() == args.count and draw.caught >= need else 1


if __name__ == "__main__":
    sys.exit(main())
