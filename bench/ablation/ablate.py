#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes each rule and exception of detect/ in turn, and prints what its removal changes.

The frames that detectors are given on played clusters, drawn scenarios, foreign recordings and all
public data are recorded once. Each entry of entries.txt is applied to a copy of detect/, which is then
given the same frames. What it says is compared with what detect/ says as it is.

Exits with 0, 2 if the command line is wrong, 3 if an entry no longer applies or something cannot be built.
"""
import argparse
import concurrent.futures
import glob
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "foreign"))
ENTRIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "entries.txt")
THRESHOLDS = "detect/thresholds/thresholds.def"
SUITES = ("data", "foreign", "streams", "drawn", "accuracy")
NETWORKS = {"plain": [], "fabric": ["--fabric"], "proxies": ["--proxies", "--mode", "plugin"]}
GENERATORS = {"foreign": "engine", "streams": "streams"}
FORMS = ("straggler", "kineto", "systrace")
PROGRAMS = os.path.join(ROOT, "build", "release", "ablation")
SOURCES = ("bench/ablation/play.c", "bench/ablation/frames.c")
CFLAGS = ["-D_GNU_SOURCE", "-std=gnu17", "-O1", "-w"]


class Stale(Exception):
    """An entry that does not apply to the tree."""


# ---- entries -------------------------------------------------------------------------------------


def read_entries(path=ENTRIES):
    """(name, what, arguments) of each line. Columns are separated by ' | '."""
    entries = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        columns = line.split(" | ")
        wanted = {"return": 5, "replace": 5, "value": 4}.get(columns[1] if len(columns) > 1 else "", -1)
        if len(columns) != wanted:
            raise Stale(f"line {number}: '{line}' is no entry")
        entries.append((columns[0], columns[1], columns[2:]))
    names = [entry[0] for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise Stale(f"'{name}' is the name of two entries")
    return entries


def only(text, pattern, what):
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if len(found) != 1:
        raise Stale(f"{what} occurs {len(found)} times, not once")
    return found[0]


def apply(entry, *roots):
    """(path, the file's text without the rule). The first root that has the file counts."""
    name, kind, arguments = entry
    path = THRESHOLDS if kind == "value" else arguments[0]
    try:
        root = next((root for root in roots if os.path.exists(os.path.join(root, path))), roots[0])
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise Stale(f"'{name}': {path}: {error.strerror}") from error
    try:
        if kind == "return":
            at = only(text, rf"^[a-z][^;\n]*\b{arguments[1]}\([^;{{]*\)\n{{\n", f"function {arguments[1]}() of {path}")
            return path, text[: at.end()] + f"\treturn {arguments[2]};\n".replace(" void;", ";") + text[at.end() :]
        if kind == "value":
            at = only(text, rf"^NT_[A-Z]+\((?:[a-z0-9_]+, )?{arguments[0]},\s+((?:[^,()]|\([^()]*\))+),", f"row {arguments[0]}")
            return path, text[: at.start(1)] + arguments[1] + text[at.end(1) :]
        old = re.sub(r"\\ ", r"\\s+", re.escape(arguments[1]))
        at = only(text, old, f"'{arguments[1]}' in {path}")
        return path, text[: at.start()] + ("" if arguments[2] == "void" else arguments[2]) + text[at.end() :]
    except Stale as error:
        raise Stale(f"'{name}': {error}") from error


# ---- recordings ----------------------------------------------------------------------------------


def record(job):
    """Runs a program whose detectors write their frames to a file."""
    path, arguments = job
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=dict(os.environ, NT_FRAMES=path + ".new"))
    with open(path + ".txt", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    if os.path.exists(path + ".new"):
        os.rename(path + ".new", path)


def foreign(job):
    """Writes a foreign recording and has it analysed."""
    import score

    path, suite, form, seed = job
    play, writers = score.GENERATORS[GENERATORS[suite]]
    with tempfile.TemporaryDirectory(prefix="neutracer-ablation-") as directory:
        ranks, truth = play(seed, form)
        where, _clock = writers[form](ranks, truth, directory)
        record((path, [os.path.join(PROGRAMS, "neutracer"), "analyze", "--json", where]))


def data_jobs(directory):
    """All public recordings, each as a person gives it to the command."""
    tests = os.path.join(ROOT, "tests", "data")
    paths = glob.glob(tests + "/straggler/*.csv.gz") + glob.glob(tests + "/flight/*/") + glob.glob(tests + "/kineto/*/") + glob.glob(tests + "/kineto/*.tar.gz")
    for path in sorted(paths):
        name = os.path.basename(path.rstrip("/")).split(".")[0]
        yield os.path.join(directory, f"data-{name}.frames"), [os.path.join(PROGRAMS, "neutracer"), "analyze", "--json", path]


def suite_of(path):
    return os.path.basename(path).split("-")[0]


def record_all(directory, args):
    """Records what the suites need and is not recorded yet."""
    os.makedirs(directory, exist_ok=True)
    jobs = list(data_jobs(directory))
    for seed in args.drawn:
        jobs.append((os.path.join(directory, f"drawn-{seed}-{args.calls}.frames"), [os.path.join(PROGRAMS, "drawn"), "--list", "--calls", str(args.calls), "--seeds", f"{seed},{seed}"]))
    for seed, layout, network in itertools.product(args.seeds, args.layouts, args.networks):
        program = [os.path.join(PROGRAMS, "accuracy"), "--list", "--one-in", str(args.one_in), "--seeds", f"{seed},{seed}", "--layout", layout]
        jobs.append((os.path.join(directory, f"accuracy-{seed}-{args.one_in}-{layout}-{network}.frames"), program + NETWORKS[network]))
    seeds = {"foreign": args.foreign, "streams": args.streams}
    others = [(os.path.join(directory, f"{suite}-{form}-{seed}.frames"), suite, form, seed) for suite in seeds for form in FORMS for seed in seeds[suite]]
    jobs = [job for job in jobs if suite_of(job[0]) in args.suites]
    others = [job for job in others if job[1] in args.suites]
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        done = [pool.submit(record, job) for job in jobs if not os.path.exists(job[0] + ".txt")]
        done += [pool.submit(foreign, job) for job in others if not os.path.exists(job[0] + ".txt")]
        for task in done:
            task.result()
    files = {suite: [] for suite in SUITES}
    for path in [job[0] for job in jobs + others]:
        if os.path.exists(path):
            files[suite_of(path)].append(path)
    return files


# ---- build ---------------------------------------------------------------------------------------


class Player:
    """A copy of detect/ with its objects, of which an entry makes other ones."""

    def __init__(self, scratch, pool):
        self.scratch, self.pool, self.variant = scratch, pool, os.path.join(scratch, "variant")
        shutil.copytree(os.path.join(ROOT, "detect"), os.path.join(scratch, "detect"))
        sources = [os.path.relpath(path, scratch) for path in glob.glob(scratch + "/detect/**/*.c", recursive=True)]
        self.sources = sorted(sources) + list(SOURCES)
        self.object = self.compile(self.sources, "object")
        self.link(self.object, "play")

    def compile(self, sources, into):
        """The objects of the sources; a file of the variant goes before the tree's."""
        jobs, made = [], {}
        for source in sources:
            made[source] = os.path.join(self.scratch, into, source.replace("/", "_") + ".o")
            os.makedirs(os.path.dirname(made[source]), exist_ok=True)
            roots = [root for root in (self.variant, self.scratch, ROOT) if os.path.exists(os.path.join(root, source))]
            includes = [f"-I{root}" for root in (self.variant, self.scratch, ROOT, os.path.join(ROOT, "build", "gen"))]
            jobs.append(["gcc", *CFLAGS, *includes, "-c", os.path.join(roots[0], source), "-o", made[source]])
        list(self.pool.map(command, jobs))
        return made

    def link(self, objects, name):
        command(["gcc", "-o", os.path.join(self.scratch, name), *objects.values(), os.path.join(ROOT, "build", "release", "lib", "libcommon.a"), "-llapacke", "-lm"])

    def users(self, name):
        """The sources that a row of the thresholds reaches: all, if a header uses it."""
        used = [path for path in glob.glob(self.scratch + "/detect/**/*.[ch]", recursive=True) if re.search(rf"\b{name}\b", open(path, encoding="utf-8").read())]
        if any(path.endswith(".h") for path in used):
            return self.sources
        return [os.path.relpath(path, self.scratch) for path in used]

    def build(self, entries):
        """Builds the variant without the entries, and says where it is."""
        sources = set()
        shutil.rmtree(self.variant, ignore_errors=True)
        for entry in entries:
            path, text = apply(entry, self.variant, self.scratch)
            os.makedirs(os.path.dirname(os.path.join(self.variant, path)), exist_ok=True)
            with open(os.path.join(self.variant, path), "w", encoding="utf-8") as file:
                file.write(text)
            sources.update(self.users(entry[2][0]) if entry[1] == "value" else self.sources if path.endswith(".h") else [path])
        self.link({**self.object, **self.compile(sorted(sources), "other")}, "play-variant")
        return "play-variant"


def command(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Stale(f"cannot be built: {shlex.join(arguments)}:\n{done.stderr[-2000:]}")


def play(job):
    """{detector: its incidents that fired}."""
    done = subprocess.run(job, capture_output=True, text=True, check=False)
    said, lines = {}, []
    for line in done.stdout.splitlines():
        if line.startswith("= "):
            lines = said.setdefault(line[2:], [])
        else:
            lines.append(line)
    if done.returncode != 0:
        said[" ".join(job[1:])] = [f"exit status {done.returncode}"]
    return said


def say(player, program, paths):
    half = max(1, (len(paths) + 1) // 2)
    jobs = [[os.path.join(player.scratch, program), *paths[i : i + half]] for i in range(0, len(paths), half)]
    return {key: lines for said in player.pool.map(play, jobs) for key, lines in said.items()}


# ---- comparison ----------------------------------------------------------------------------------

LINE = re.compile(r"(\w+) (\S+) (\w+) \[([^]]*)\] seen ([\d.]+) (.*)")
ACCUSES = ("rank", "node", "nic", "path")


def read(lines):
    """({who is accused: when}, {notes}) of one detector."""
    accused, notes = {}, []
    for line in lines:
        match = LINE.match(line)
        if not match:
            return {line: 0.0}, []
        who = [name for name in match[4].split(",") if name.split("-")[0] in ACCUSES]
        if match[1] == "info" or not who:
            notes.append(match[2])
        else:
            accused.update({name: float(match[5]) for name in who})
    return accused, notes


def compare(before, after):
    """What changed between two runs of a suite, as numbers, and where."""
    change = {"of": len(before), "runs": 0, "lost": 0, "new": 0, "notes": 0, "delay": 0.0, "keys": []}
    delays = []
    for key, lines in before.items():
        if after.get(key) == lines:
            continue
        change["runs"] += 1
        change["keys"].append((key, lines, after.get(key, [])))
        (was, were), (now, are) = read(lines), read(after.get(key, []))
        change["lost"] += len(was.keys() - now.keys())
        change["new"] += len(now.keys() - was.keys())
        change["notes"] += len(are) - len(were)
        delays += [now[name] - was[name] for name in was.keys() & now.keys()]
    change["delay"] = sum(delays) / len(delays) if delays else 0.0
    return change


def is_worse(change):
    return change["lost"] or change["new"] or change["notes"] > 0


def cell(change):
    if change is None:
        return "not played"
    if not change["runs"]:
        return "none"
    parts = [f"{change['runs']} of {change['of']} changed"]
    parts += [f"{change['lost']} not accused"] if change["lost"] else []
    parts += [f"{change['new']} others accused"] if change["new"] else []
    parts += [f"notes {change['notes']:+d}"] if change["notes"] else []
    parts += [f"delay {change['delay']:+.1f} s"] if abs(change["delay"]) >= 0.05 else []
    return ", ".join(parts)


def total(said):
    both = [read(lines) for lines in said.values()]
    return f"{len(said)} detectors, {sum(len(a) for a, _ in both)} accused, {sum(len(n) for _, n in both)} notes"


# ---- command line --------------------------------------------------------------------------------


def numbers(text):
    first, _, last = text.partition("..")
    return list(range(int(first), int(last or first) + 1))


def check(entries):
    bad = 0
    for entry in entries:
        try:
            apply(entry, ROOT)
        except Stale as error:
            print(error)
            bad = 3
    return bad


def ablate(player, entries, base, files, args):
    """What the removal of entries changes, by suite."""
    program, changes = player.build(entries), {}
    for suite in args.suites:
        changes[suite] = compare(base[suite], say(player, program, files[suite]))
        if args.until_worse and is_worse(changes[suite]):
            break
    return changes


def print_row(name, changes, args):
    print(f"| {name} | " + " | ".join(cell(changes.get(suite)) for suite in args.suites) + " |", flush=True)
    for change in changes.values() if args.keys else ():
        for key, was, now in change["keys"]:
            print(f"    {os.path.basename(key)}\n        was: " + "; ".join(was) + "\n        now: " + "; ".join(now))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only check that each entry applies")
    parser.add_argument("--only", metavar="REGEX", default="", help="entries whose name matches")
    parser.add_argument("--together", action="store_true", help="remove all these entries at once")
    parser.add_argument("--suites", default=",".join(SUITES), metavar="NAME,...")
    parser.add_argument("--seeds", type=numbers, default=numbers("21..22"), metavar="A..B", help="of played clusters")
    parser.add_argument("--layouts", default="dp2,dp3,pp4-dp2,tp4-dp2,dp8,fsdp32,tp2-dp8,pp4-dp8,tp2-pp2-dp8,ep4-dp16,tp4-dp8-split", metavar="NAME,...")
    parser.add_argument("--networks", default=",".join(NETWORKS), metavar="NAME,...", help="of played clusters: whose transfers are timed")
    parser.add_argument("--one-in", type=int, default=3, metavar="N", help="of the played clusters, one run of N")
    parser.add_argument("--drawn", type=numbers, default=numbers("1..30"), metavar="A..B", help="seeds of drawn scenarios")
    parser.add_argument("--calls", type=int, default=40000, metavar="N", help="calls of a drawn scenario, at most")
    parser.add_argument("--foreign", type=numbers, default=numbers("1..15"), metavar="A..B", help="seeds of the first simulator of foreign recordings")
    parser.add_argument("--streams", type=numbers, default=numbers("1..15"), metavar="A..B", help="seeds of the second")
    parser.add_argument("--frames", default=os.path.join(ROOT, "build", "ablation"), metavar="DIR", help="where the frames are kept")
    parser.add_argument("--until-worse", action="store_true", help="skip the suites after one that accuses others")
    parser.add_argument("--keys", action="store_true", help="print what changed")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.suites, args.layouts, args.networks = args.suites.split(","), args.layouts.split(","), args.networks.split(",")
    if any(suite not in SUITES for suite in args.suites):
        parser.error(f"suites are {', '.join(SUITES)}")
    try:
        entries = [entry for entry in read_entries() if re.search(args.only, entry[0])]
        bad = check(entries)
        if args.check:
            return bad
        files = record_all(args.frames, args)
        with tempfile.TemporaryDirectory(prefix="neutracer-ablation-") as scratch, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            player = Player(scratch, pool)
            base = {suite: say(player, "play", files[suite]) for suite in args.suites}
            print("| removed | " + " | ".join(args.suites) + " |\n|---|" + "---|" * len(args.suites))
            print("| nothing | " + " | ".join(total(base[suite]) for suite in args.suites) + " |", flush=True)
            for group in [entries] if args.together else [[entry] for entry in entries]:
                name = ", ".join(entry[0] for entry in group)
                try:
                    print_row(name, ablate(player, group, base, files, args), args)
                except Stale as error:
                    print(f"'{name}': {error}", flush=True)
                    bad = 3
        return bad
    except Stale as error:
        print(error)
        return 3


if __name__ == "__main__":
    sys.exit(main())
