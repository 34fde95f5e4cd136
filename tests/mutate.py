#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutation test: do the unit tests notice when one line of the core is wrong?

Draws one-line mutations of the code where a silent mistake would be worst. Each is compiled alone,
under sanitizers, and linked with the tests of its room: unit tests and the sweep of failed
allocations. A mutant is caught when a test fails, crashes or hangs. Mutants that do not compile, or
compile to the same code, are drawn again.
"""

import argparse
import fnmatch
import glob
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

# Files, and the tests that answer for them: of tests/unit, and of tests/oom where so named.
ROOMS = [
    (["detect/**/*.c"], ["detect/**/test_*", "test_oom_detect*"]),
    (["agent/elf/*.c"], ["agent/elf/test_*", "test_oom_agent"]),
    (["common/bus/bus_spool*.c", "common/bus/spool/*.c"], ["common/bus/test_*", "test_oom_bus"]),
    (["proto/wire*.c"], ["proto/test_*", "test_oom_bus"]),
    (["agent/identity/cgroup.c", "agent/identity/device.c", "agent/identity/placement.c", "agent/identity/pods.c",
      "agent/identity/workload.c", "common/base/ascii.c", "common/base/json_stream.c"],
     ["agent/identity/test_agent_cgroup", "agent/identity/test_agent_device", "agent/identity/test_agent_placement",
      "agent/identity/test_agent_pods", "agent/identity/test_agent_workload", "common/base/test_common_ascii",
      "common/base/test_common_json_stream"]),
    (["aggregator/notify/kube_*.c"], ["aggregator/notify/test_aggregator_kube*", "test_oom_kube"]),
]
WORK = "build/mutate"
TREE = f"{WORK}/tree"
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

# What is left out: (code, the mutations within it). Nothing here may be something that a test could
# notice: a filter that hides such a change makes the figure a lie. When in doubt it stays in.
BOUNDARY = {(r" < ", " <= "), (r" >= ", " > ")}
EQUIVALENT = [
    # Descriptor 0 is nobody's but stdin's, so "is open" may be asked with 0 on either side.
    (re.compile(r"fd(?: < | >= )0\b"), BOUNDARY | {CONSTANT}),
    # An array that starts with one place more, or grows a little faster, holds the same.
    (re.compile(r"\b(?:cap|more) = .* \? .* \* 2 : \d+;"), {CONSTANT}),
    # Memory for more than is needed: sums and products, where a greater number makes more of it. (What
    # makes less of it stays in: `- 1`, `/ 2`.)
    (re.compile(r"\bcalloc\((?:[^][,;?/%-]|->)*,"), {CONSTANT}),
    # Closed, or not watched, is any negative number, and so is "for ever" to poll().
    (re.compile(r"\b(?:\w*fd|left_ms) = -1;|\.(?:fd|waiting) = -1\b|\? -1 : (?:\w+(?:->|\.))*fd;"), {CONSTANT}),
    # The kernel numbers its watches from 1: one with number 0 there is not.
    (re.compile(r"\b(?:wd|watch->waiting) (?:>=|<) 0\b"), BOUNDARY | {CONSTANT}),
    # How much is read or asked for at a time, how often is looked and from how many on another way is
    # quicker: a little more of that takes another time and says the same.
    (re.compile(r"^\t(?:BLIND_MS|BYTES_PER_BYTE|DECODE_CHUNK_BYTES|EVENTS_BYTES|FEW|FIRST_BYTES) = .*,"), {CONSTANT}),
    # Wherever between both ends a search cuts, it finds the same.
    (re.compile(r"\bmiddle = low \+ \(high - low\) / 2;"), {CONSTANT}),
]

# `if (a < b)` over `a = b;` alone: where the two are equal it says nothing new, whatever else is asked.
OPERAND = r"((?:[\w.>-]|\[[^\]]*\])+)"
BEFORE = re.compile(rf"(?:\(|&& |\|\| ){OPERAND}$")
AFTER = re.compile(rf"{OPERAND}(?:\)| &&| \|\|)")
AT_A_TIE = {(r" < ", " <= "), (r" > ", " >= "), (r" <= ", " < "), (r" >= ", " > ")}

# `a < b` over `return 0;` over `return a - b;`: where they are equal it is 0 either way.
SHORTFALL = re.compile(r"[ (]([^()|&]*(?:\([^()]*\)[^()|&]*)?) < ([^()|&<]+)\)$")

# Of what a comparator answers, qsort() and whoever asks "are these equal?" look at the sign alone.
COMPARATOR = re.compile(r"\w[\w *]*\b((?:compare|order)_\w+)\(")
SIGN = re.compile(r"(?<= )\? -1 : 1;$")


def is_sign_alone(name, text):
    """Whether nobody in a file holds the answer of a comparator against another number than 0."""
    return not re.search(rf"\b{name}\([^;{{]*?\) [=!<>]=? (?!0\b)", text)


def is_equivalent(code, below, last, function, match, pattern, replacement):
    sign = SIGN.search(code)
    if function and sign and sign.start() <= match.start() and pattern == CONSTANT:
        return True
    short = SHORTFALL.search(code)
    if (short and match.start() == short.end(1) and (pattern, replacement) in AT_A_TIE and
            below.strip() == "return 0;" and last.strip() == "return {} - {};".format(*short.groups())):
        return True
    one, other = BEFORE.search(code[:match.start()]), AFTER.match(code[match.end():])
    if ((pattern, replacement) in AT_A_TIE and one and other and re.match(r"\t+if \(.*\)$", code) and
            below.strip() in (f"{one[1]} = {other[1]};", f"{other[1]} = {one[1]};") and
            not last.strip().startswith("else")):
        return True
    return any(found.start() <= match.start() and match.end() <= found.end() and
               (pattern in kinds or (pattern, replacement) in kinds)
               for regex, kinds in EQUIVALENT for found in regex.finditer(code))


def mask(text):
    """The text with comments and strings blanked, so that columns stay."""
    def blank(match):
        return re.sub(r"[^\n]", "\x01", match.group(0))
    return re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', blank, text, flags=re.S)


def candidates(path, text, left_out):
    """(path, line number, old line, new line) of every mutation of a file; left_out gets the equivalent ones."""
    lines = text.split("\n")
    depth = 0
    masked = mask(text)
    comparator = None
    masked_lines = masked.split("\n")
    for number, (line, code) in enumerate(zip(lines, masked_lines)):
        inside = depth > 0
        if not inside and code.strip():
            found = COMPARATOR.match(code)
            comparator = found and is_sign_alone(found.group(1), masked) or code.startswith("{") and comparator
        depth += code.count("{") - code.count("}")
        # An assertion fails for a caller that we do not have.
        if not inside or not code.strip() or code.lstrip().startswith(("#", "case ")) or "assert(" in code:
            continue
        for pattern, replacement in OPERATORS:
            for match in re.finditer(pattern, code):
                if is_equivalent(code, *masked_lines[number + 1:number + 3], comparator, match, pattern, replacement):
                    left_out.append((path, number, line, replacement))
                    continue
                new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
                if "\x01" in new:
                    mutated = re.sub(pattern, replacement, line, count=1)
                else:
                    mutated = line[:match.start()] + new + line[match.end():]
                if mutated != line:
                    yield path, number, line, mutated


def names_of(test):
    """test_x, and in a folder of tests/unit test_ROOM_x too."""
    _, kind, *folders, name = test[:-2].split("/")
    return {name, name.replace("test_", f"test_{folders[0]}_", 1)} if kind == "unit" and folders else {name}


def tests_of(path):
    """The tests of a file's room."""
    for sources, tests in ROOMS:
        if any(path in glob.glob(s) for s in sources):
            return sorted({f.removeprefix("tests/")[:-2] for f in glob.glob("tests/oom/test_*.c") +
                           glob.glob("tests/unit/**/test_*.c", recursive=True)
                           if any(fnmatch.fnmatchcase(name, t) for name in names_of(f) for t in tests)})
    return []


def program(test):
    kind, name = test.split("/", 1)
    return f"build/{MODE}/{'test-oom' if kind == 'oom' else 'test'}/{name}"


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
    for room in ("agent", "aggregator", "bpf", "cli", "common", "detect", "proto", "tests/unit", "tests/oom"):
        for old in glob.glob(f"{target}/{room}/**/*.[ch]", recursive=True):
            if not os.path.exists(os.path.relpath(old, target)):
                os.unlink(old)


def make(targets, jobs=1):
    return subprocess.run(MAKE + [f"-j{jobs}"] + targets, cwd=TREE, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)


def words_of_make(name):
    """A variable of the Makefile, as words."""
    return shlex.split(make(["--eval", f"say-{name}: ; $(info $({name}))", f"say-{name}"]).stdout)


def build(command):
    """What a compiler complains about, or None."""
    done = subprocess.run(command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    return (done.stdout or "it failed") if done.returncode else None


def run_test(binary, limit):
    """Whether a test program passes; all that it started ends with it."""
    quick = {"ASAN_OPTIONS": "symbolize=0", "UBSAN_OPTIONS": "symbolize=0"}
    with subprocess.Popen([binary], cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
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


class Builder:
    """Compiles one changed file and links tests with it, in a directory of its own."""

    def __init__(self, place):
        self.place = os.path.abspath(place)
        self.good = {}
        os.makedirs(self.place, exist_ok=True)
        self.compiler = words_of_make("CC") + words_of_make("CPPFLAGS")
        self.flags = words_of_make("CFLAGS")
        self.wrap = words_of_make("oom_link")
        # In the order of the Makefile: two rooms may have a function of one name.
        self.archives = [f"build/{MODE}/lib/lib{room}.a" for room in words_of_make("libraries")]
        self.libraries = words_of_make("LDFLAGS") + words_of_make("link_tests")

    def compile(self, text, flags, obj):
        source = f"{self.place}/mutant.c"
        with open(source, "w", encoding="utf-8") as f:
            f.write(text)
        return not build([*self.compiler, *flags, "-w", "-c", source, "-o", f"{self.place}/{obj}"])

    def machine_code(self, text):
        """What an optimising compiler makes of a file: the same for an equivalent change it sees through."""
        if not self.compile(text, ["-std=gnu17", "-O2", "-g0"], "code.o"):
            return None
        with open(f"{self.place}/code.o", "rb") as f:
            return f.read()

    def good_code(self, path, text):
        if path not in self.good:
            self.good[path] = self.machine_code(text)
        return self.good[path]

    def link(self, test):
        """A test program with the mutant in it: an object goes before the same one of an archive."""
        place = f"build/{MODE}/obj/tests"
        objects = [f"{place}/{test}.o"] + ([f"{place}/oom/oom.o", *self.wrap] if test.startswith("oom/") else [])
        binary = f"{self.place}/{test.replace('/', '-')}"
        complaint = build([self.compiler[0], "-o", binary, *objects, f"{self.place}/mutant.o", "-Wl,--start-group",
                           *self.archives, "-Wl,--end-group", *self.libraries])
        if complaint:
            raise RuntimeError(f"{test} does not link with a changed object:\n{complaint}")
        return binary

    def judge(self, mutant, limits):
        """The test that notices, SURVIVED, or None where there is nothing to notice."""
        path, number, old, new = mutant
        with open(f"{TREE}/{path}", encoding="utf-8") as f:
            text = f.read()
        good = self.good_code(path, text)
        lines = text.split("\n")
        assert lines[number] == old
        lines[number] = new
        text = "\n".join(lines)
        code = self.machine_code(text)
        if code is None or code == good or not self.compile(text, self.flags, "mutant.o"):
            return None
        for test, limit in limits.items():
            binary = self.link(test)
            passed = run_test(binary, limit)
            os.unlink(binary)
            if not passed:
                return test
        return "SURVIVED"


def limits_of(path, took):
    """Seconds by test of a file's room: first those that share words with its name, then the quickest."""
    words = set(re.split(r"\W|_", path))
    tests = sorted(set(tests_of(path)) & set(took), key=lambda t: (-len(words & set(t.split("_"))), took[t]))
    return {t: 5 + 4 * took[t] for t in tests}


class Draw:
    """Hands out mutants until enough of them counted."""

    def __init__(self, mutants, count, took):
        self.lock = threading.Lock()
        self.wake = threading.Condition(self.lock)
        self.mutants = iter(mutants)
        self.wanted = count
        self.running = 0
        self.took = took
        self.caught = 0
        self.survived = 0

    def counted(self):
        return self.caught + self.survived

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
            if verdict:
                self.survived += verdict == "SURVIVED"
                self.caught += verdict != "SURVIVED"
                print(f"{self.counted():3}  {verdict:26} {path}:{number + 1}: {old.strip()}  →  {new.strip()}",
                      flush=True)
            self.wake.notify_all()

    def work(self, builder):
        while mutant := self.next():
            self.done(mutant, builder.judge(mutant, limits_of(mutant[0], self.took)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--need", type=int, help="default: 90 %% of the count")
    parser.add_argument("--only", default="", help="only files whose path starts so")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    args = parser.parse_args()
    need = args.need if args.need is not None else (args.count * 9 + 9) // 10

    mutants, left_out = [], []
    for sources, _ in ROOMS:
        for path in sorted({f for s in sources for f in glob.glob(s)}):
            if not path.startswith(args.only):
                continue
            if not tests_of(path):
                sys.exit(f"{path} has no test of its room")
            with open(path, encoding="utf-8") as f:
                mutants += candidates(path, f.read(), left_out)
    if not mutants:
        sys.exit("nothing to mutate")
    random.Random(args.seed).shuffle(mutants)
    tests = sorted({t for path in {m[0] for m in mutants} for t in tests_of(path)})

    started = time.monotonic()
    copy_tree(TREE)
    built = make([program(t) for t in tests], jobs=args.jobs)
    if built.returncode != 0:
        sys.exit(f"the tree does not build:\n{built.stdout[-3000:]}")
    took = {}
    for test in tests:
        before = time.monotonic()
        if not run_test(os.path.abspath(f"{TREE}/{program(test)}"), 120):
            sys.exit(f"{test} fails without a mutation")
        took[test] = time.monotonic() - before
    print(f"{len(mutants)} possible mutations, {len(left_out)} more left out as equivalent, seed {args.seed}; "
          f"the unmutated tree passes ({time.monotonic() - started:.0f} s)", flush=True)

    draw = Draw(mutants, args.count, took)
    workers = [threading.Thread(target=draw.work, args=(Builder(f"{WORK}/{i}"),), daemon=True)
               for i in range(args.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{draw.caught} of {draw.counted()} mutants caught, {need} wanted "
          f"({time.monotonic() - started:.0f} s)")
    return 0 if draw.counted() == args.count and draw.caught >= need else 1


if __name__ == "__main__":
    sys.exit(main())
