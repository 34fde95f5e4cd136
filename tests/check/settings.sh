#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The config file and the docs agree with the option tables and the chart: the file that a program prints
# has every key and is accepted with its defaults, the files in the docs are accepted, and each chart value
# that the docs name exists. (help.sh compares --help, manual and completions, manifests.sh the chart.)
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=${NT_BIN:-build/release/bin}

# accepts PROGRAM FILE: all of it is read, and then the environment, which has a mistake: nothing starts.
accepts() {
  local said status=0
  said=$(NT_BUS=none "$bin/$1" --config "$2" 2>&1) || status=$?
  [[ $status -eq 3 && $said == *NT_BUS* ]] || report "$1 does not accept ${3:-its own config file} but ends with $status: $said"
}

for name in neutracer-agent neutracer-aggregator; do
  "$bin/$name" --print-config >"$work/$name.yaml"
  diff <(sed -n 's/^#\([a-z][a-z0-9-]*\): .*/\1/p' "$work/$name.yaml") \
    <("$bin/$name" --print-options | awk -F'\t' '$3 != "-" { print $3 }') >"$work/diff" ||
    report "$name --print-config has other keys than its table: $(cat "$work/diff")"
  accepts "$name" "$work/$name.yaml"
  # The defaults as keys. A key without one shows only the name of a value.
  "$bin/$name" --print-options | awk -F'\t' '$3 != "-" && $5 != "-" { print $3 }' >"$work/keys"
  sed -n 's/^#\([a-z][a-z0-9-]*: \)/\1/p' "$work/$name.yaml" | awk -F: 'NR == FNR { keys[$1]; next } $1 in keys' "$work/keys" - \
    >"$work/$name-defaults.yaml"
  [ "$(wc -l <"$work/$name-defaults.yaml")" -gt 10 ] || report "$name: no defaults in its config file"
  accepts "$name" "$work/$name-defaults.yaml" "the defaults of its config file"
done
echo 'no-such-key: 1' >"$work/broken"
[ -n "$(accepts neutracer-agent "$work/broken")" ] || report "a config file with an unknown key is accepted"

python3 -c 'import yaml' 2>/dev/null || {
  echo "skip: python3-yaml is not installed"
  exit 77
}
tests/files.sh '^(docs/.*|README|SECURITY|deploy/helm/.*)\.md$' >"$work/docs"
python3 - "$work" "$bin" <<'END' || bad=1
import json, re, subprocess, sys
import yaml

work, bin_dir = sys.argv[1:]
schema = json.load(open("deploy/helm/neutracer/values.schema.json"))
values = yaml.safe_load(open("deploy/helm/neutracer/values.yaml"))
bad = found = files = 0

def options(program):
    text = subprocess.run([f"{bin_dir}/neutracer-{program}", "--print-options"], check=True, capture_output=True, text=True).stdout
    return {row.split("\t")[0] for row in text.splitlines()}

def exists(path):
    """Whether the chart has the value of a path such as kafka.tls.enabled."""
    node, value = schema, values
    for at, key in enumerate(path):
        if path[1:2] == ["options"] and at == 2:
            return key in options(path[0])
        if isinstance(value, dict) and key in value:
            node, value = node.get("properties", {}).get(key, {}), value[key]
        elif key in node.get("properties", {}):
            node, value = node["properties"][key], None
        else:
            return at > 0 and not isinstance(value, dict) or value == {}
    return True

def paths(tree, before=()):
    for key, value in tree.items():
        if isinstance(value, dict) and value and before + (key,) != ("agent", "options"):
            yield from paths(value, before + (key,))
        else:
            yield before + (key,)

top = {key for key in values if key != "global"}
for name in open(f"{work}/docs").read().split():
    text = open(name).read()
    named = re.findall(r"--set(?:-string|-file|-json)?[ =]([A-Za-z][\w.-]*)=", text)
    named += [word for word in re.findall(r"`([a-z][A-Za-z]*(?:\.[A-Za-z-]+)+)`", text) if word.split(".")[0] in top]
    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S) + re.findall(r"--values - <<'?END'?\n(.*?)^END", text, re.M | re.S):
        first = re.match(r"# /etc/neutracer/(agent|aggregator)\.yaml\n", block)
        if first:
            files += 1
            with open(f"{work}/{files}.{first[1]}.doc", "w") as out:
                out.write(block)
            continue
        try:
            tree = yaml.safe_load(block)
        except yaml.YAMLError:
            continue
        if isinstance(tree, dict) and set(tree) <= top:
            named += [".".join(path) for path in paths(tree)]
    for path in named:
        found += 1
        # Names of files that look like a path of values.
        if not exists(path.split(".")) and path not in ("aggregator.yaml", "agent.yaml"):
            print(f"{name}: the chart has no value {path}")
            bad = 1
if found < 30 or not files:
    print(f"the docs name {found} values of the chart and {files} config files: the search is broken")
    bad = 1
assert exists(["kafka", "tls", "enabled"]) and not exists(["kafka", "tls", "on"]) and not exists(["agent", "options", "windows"])
sys.exit(bad)
END
for file in "$work"/*.doc; do
  [ -e "$file" ] || continue
  name=${file%.doc}
  accepts "neutracer-${name##*.}" "$file" "a file of the docs"
done
exit $bad
