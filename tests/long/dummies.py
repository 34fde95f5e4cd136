#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the libraries that PyTorch names but that a plain job does not need.

    dummies.py TORCH_LIB_DIR OUT_DIR STAND_IN_DIR...

Which ones these are the libraries themselves say: their NEEDED entries, less what lies beside them,
what the stand-in directories hold. Each gets the undefined symbols that are
asked of it, under the version that is asked for; all functions answer 0, which is success.
"""
import collections
import pathlib
import re
import subprocess
import sys

NVIDIA = re.compile(r"^lib(cu|nv)")


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, capture_output=True,
                          text=True).stdout


def symbols(path):
    """(type, name, version or "", is it defined, is it weak) of each dynamic symbol."""
    for line in readelf("--dyn-syms", path).splitlines():
        word = line.split()
        if len(word) < 8 or word[4] not in ("GLOBAL", "WEAK") or word[7].startswith("@"):
            continue
        name, _, version = word[7].partition("@")
        yield word[3], name, version.lstrip("@"), word[6] != "UND", word[4] == "WEAK"


def wanted_versions(path):
    """The file that each version is asked of."""
    found, file = {}, None
    for line in readelf("--version-info", path).splitlines():
        match = re.search(r"File: (\S+)", line)
        if match:
            file = match[1]
        match = re.search(r"Name: (\S+)\s+Flags:", line)
        if match and file:
            found[match[1]] = file
        if "Version symbols section" in line or "Version definition section" in line:
            file = None
    return found


def build(out, name, nodes, plain, objects):
    text = [".text"]
    for symbol in sorted(plain.union(*nodes.values())):
        if symbol in objects:
            text.append(f".bss\n.globl {symbol}\n.type {symbol},@object\n.size {symbol},64\n"
                        f"{symbol}: .zero 64\n.text")
        else:
            text.append(f".globl {symbol}\n.type {symbol},@function\n{symbol}: xor %eax,%eax\nret")
    text.append('.section .note.GNU-stack,"",@progbits\n')
    source, script = out / f".{name}.s", out / f".{name}.map"
    nodes = nodes or {name: ["none"]}
    source.write_text("\n".join(text))
    script.write_text("".join(f"{node} {{ global: {'; '.join(sorted(names))}; }};\n"
                              for node, names in sorted(nodes.items())))
    subprocess.run(["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}",
                    f"-Wl,--version-script,{script}", "-o", out / name, source], check=True)
    source.unlink()
    script.unlink()


def main():
    torch, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    stand_ins = [path for directory in sys.argv[3:] for path in pathlib.Path(directory).glob("*.so*")]
    users = sorted(torch.glob("lib*.so*"))
    beside = {path.name for path in users + stand_ins}
    needed, asked_of, undefined, objects = set(), {}, set(), set()
    defined = {name for path in users + stand_ins for _, name, _, here, _ in symbols(path) if here}
    for path in users:
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)):
            if library not in beside and NVIDIA.match(library):
                needed.add(library)
        asked_of.update(wanted_versions(path))
    for path in users:
        for kind, name, version, here, weak in symbols(path):
            if here or weak or (name in defined and asked_of.get(version) not in needed):
                continue
            undefined.add((name, version))
            if kind == "OBJECT":
                objects.add(name)
    missing = sorted(name for name, version in undefined
                     if asked_of.get(version) in {path.name for path in stand_ins})
    if missing:
        sys.exit(f"the stand-in lacks {', '.join(missing)}")
    nodes = collections.defaultdict(lambda: collections.defaultdict(set))
    plain = set()
    for name, version in undefined:
        if version and asked_of.get(version) in needed:
            nodes[asked_of[version]][version].add(name)
        elif not version and re.match(r"^_?_?(cu|nv)", name):
            plain.add(name)
    out.mkdir(parents=True, exist_ok=True)
    for library in sorted(needed):
        # Who asks for no version takes a function from any library.
        build(out, library, nodes[library], plain, objects)
    print(f"{len(needed)} libraries for {len(undefined)} symbols: {' '.join(sorted(needed))}")


main()
