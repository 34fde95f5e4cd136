#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what is derived in the chart: `make manifests`.

  derive.py CHART BIN [--check]

The options of the programs (BIN/neutracer-... --print-options) go into values.schema.json, so that a
value of theirs that is wrong is refused by helm; the comments of values.yaml and the options go into
README.md. With --check nothing is written: what is out of date is named, and the exit status is 1.
"""
import json
import pathlib
import re
import subprocess
import sys

import yaml

# What the templates set themselves, from the rest of the values and the cluster.
OWNED = {
    "agent": """bus bus-ca-file bus-cert-file bus-key-file bus-user bus-password-file bus-sasl-mechanism
        bus-bytes bus-age node message-key-file enrol-url enrol-token-file enrol-ca-file cgroup listen
        metrics-file nccl-ras pod-resources shelter shelter-max-bytes""".split(),
    "aggregator": """bus bus-ca-file bus-cert-file bus-key-file bus-user bus-password-file
        bus-sasl-mechanism member advertise listen token-file tls-cert-file tls-key-file
        tls-client-ca-file tls-client-auth store
        webhook-url-file webhook-secret-file receivers-file kube-events kube-node-condition node-secret-file
        signatures enrol-account enrol-audience user""".split(),
}
# Values that are documented as a whole, in the words of Kubernetes.
AS_A_WHOLE = {"resources", "updateStrategy"}
DURATION = {"type": ["string", "integer"], "maximum": 0,
            "pattern": r"^(0|[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|d))$"}
SIZE = {"type": ["string", "integer"], "pattern": r"^[0-9]+(\.[0-9]+)?[KMGT]?$"}


def options(bin_dir, program):
    """The rows of a program's table: name, allowed, default, help."""
    text = subprocess.run([f"{bin_dir}/neutracer-{program}", "--print-options"],
                          check=True, capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return [(name, allowed, default, help_text)
            for name, env, _, allowed, default, help_text in rows if env != "-"]


def schema_of(allowed):
    """What the words for the allowed values are as a JSON schema."""
    bounds = re.search(r"from (\S+) to (\S+)$", allowed)
    if allowed == "true or false":
        return {"type": "boolean"}
    if allowed.startswith("one of "):
        return {"enum": allowed[len("one of "):].split(", ")}
    if allowed.startswith("a whole number") or allowed.startswith("a number"):
        schema = {"type": "integer" if "whole" in allowed else "number"}
        if bounds:
            schema.update(minimum=json.loads(bounds[1]), maximum=json.loads(bounds[2]))
        return schema
    if allowed.startswith("a duration"):
        return DURATION
    if allowed.startswith("a size"):
        return SIZE
    return {"type": "string"}


def schema(text, tables):
    """values.schema.json with the options as they are."""
    document = json.loads(text)
    for program, table in tables.items():
        document["definitions"][f"{program}Options"] = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: schema_of(allowed) for name, allowed, _, _ in table
                           if name not in OWNED[program]},
        }
    return json.dumps(document, indent=2) + "\n"


def documented(text):
    """Path, default and comment of each value of values.yaml. Each must be documented once."""
    root, above, path = yaml.safe_load(text), [], []
    for line in text.splitlines():
        comment = re.match(r"^ *# (.*)", line)
        key = re.match(r"^( *)([A-Za-z]+):", line)
        if comment:
            above.append(comment[1])
            continue
        if key:
            path = path[:len(key[1]) // 2] + [key[2]]
            value = root
            for part in path:
                value = value[part]
            if above:
                yield ".".join(path), value, " ".join(above)
            elif not isinstance(value, dict) and not set(path) & AS_A_WHOLE:
                sys.exit(f"values.yaml: no comment above {'.'.join(path)}")
        above = []


def cell(text):
    return text.replace("|", "\\|")


def tables_of(values, tables):
    """The generated part of README.md."""
    out = ["| value | default | |", "|---|---|---|"]
    for path, default, comment in documented(values):
        out.append(f"| `{path}` | `{cell(json.dumps(default))}` | {cell(comment)} |")
    for program, table in tables.items():
        out += ["", f"Of `{program}.options`:", "", "| option | default | allowed | |", "|---|---|---|---|"]
        for name, allowed, default, help_text in table:
            if name not in OWNED[program]:
                shown = "" if default == "-" else f"`{default}`"
                out.append(f"| `{name}` | {shown} | {cell(allowed)} | {cell(help_text)} |")
    return out


def readme(text, values, tables):
    begin, end = "<!-- values: made by `make manifests` -->", "<!-- end of values -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"README.md: there is no part from '{begin}' to '{end}'")
    head, rest = text.split(begin)
    return "\n".join([head + begin, *tables_of(values, tables), end + rest.split(end)[1]])


def main():
    chart, bin_dir = pathlib.Path(sys.argv[1]), sys.argv[2]
    check = "--check" in sys.argv[3:]
    values = (chart / "values.yaml").read_text()
    tables = {program: options(bin_dir, program) for program in OWNED}
    stale = 0
    for program, table in tables.items():
        for name in OWNED[program]:
            if name not in [row[0] for row in table]:
                print(f"derive.py: neutracer-{program} has no option {name}")
                stale = 1
    for name, new in (("values.schema.json", lambda text: schema(text, tables)),
                      ("README.md", lambda text: readme(text, values, tables))):
        path = chart / name
        text = path.read_text()
        if text == new(text):
            continue
        if check:
            print(f"{path} is out of date: run 'make manifests'")
            stale = 1
        else:
            path.write_text(new(text))
    sys.exit(stale)


if __name__ == "__main__":
    main()
