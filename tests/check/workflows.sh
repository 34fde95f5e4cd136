#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The workflows of GitHub: actions are pinned by commit, permissions are the least, no expression is
# pasted into a script, no registry is named; and actionlint, with shellcheck, finds nothing.
set -euo pipefail

python3 -c 'import yaml' 2>/dev/null || {
  echo "skip: python3-yaml is not installed"
  exit 77
}
python3 - <<'END'
import glob, re, sys
import yaml

bad = 0
def report(file, what):
    global bad
    bad = 1
    print(f"{file}: {what}")

def steps_of(job):
    return job.get("steps", [])

files = sorted(glob.glob(".github/workflows/*"))
for file in files:
    text = open(file).read()
    tree = yaml.safe_load(text)
    if tree.get("permissions") != {}:
        report(file, "a workflow has no permissions of its own: 'permissions: {}'")
    for host in re.findall(r"\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:io|com|org|net|dev)\b", re.sub(r"^\s*#.*", "", text, flags=re.M)):
        report(file, f"the host {host} is named")
    for line in re.findall(r"uses: (.*)", text):
        if not line.startswith("./") and not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line):
            report(file, f"not pinned by commit, with its version as a comment: {line}")
    for name, job in tree["jobs"].items():
        if "permissions" not in job:
            report(file, f"job {name} has no permissions")
        elif "write" in job["permissions"].values() and "pull_request" in tree[True]:
            report(file, f"job {name} may write, and runs on pull requests")
        if "uses" not in job and "timeout-minutes" not in job:
            report(file, f"job {name} has no time limit")
        for step in steps_of(job):
            if "${{" in step.get("run", ""):
                report(file, f"job {name} pastes an expression into a script: use env")
            if step.get("uses", "").startswith("actions/checkout@") and step.get("with", {}).get("persist-credentials") is not False:
                report(file, f"job {name} keeps the token in the checkout")
if len(files) < 2:
    report(".github/workflows", "there are no workflows")
sys.exit(bad)
END
lint=$(tests/check/workflows/actionlint.sh 2>&1) || {
  echo "$lint"
  exit 77
}
command -v shellcheck >/dev/null || {
  echo "skip: shellcheck is not installed"
  exit 77
}
"$lint" .github/workflows/*.yml
