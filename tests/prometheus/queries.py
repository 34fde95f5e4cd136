#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every query of the dashboards and rules against a Prometheus: queries.py URL DIR. DIR has rules and
dashboards/*.json. Each must return data, each variable must resolve, and each link must lead to a dashboard."""
import itertools
import json
import math
import pathlib
import re
import sys
import urllib.parse
import urllib.request

# What Grafana replaces; the test scrapes every second.
BUILT_IN = {"__rate_interval": "15s", "__interval": "5s", "__range": "60s", "__range_s": "60"}
PANELS = {"stat", "timeseries", "table", "state-timeline", "row"}
# Of aggregators on Kafka; on a spool the lag is unknown.
KAFKA_ONLY = "neutracer_aggregator_lag_seconds"
METRIC = re.compile(r"(?:[a-z_]+:)?\bneutracer_[a-z_]+(?::[a-z0-9]+)?")


class Prometheus:
    def __init__(self, url):
        self.url = url

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, expr):
        """Labels and value of each series, without values that are no numbers."""
        found = [(one["metric"], float(one["value"][1])) for one in self.get("query", query=expr)["result"]]
        return [(labels, value) for labels, value in found if math.isfinite(value)]


def replace(text, values):
    """Variables as Grafana replaces them; several values become a regular expression."""
    def value_of(match):
        name = match.group(1) or match.group(2)
        assert name in values, f"no variable ${name} in: {text}"
        value = values[name]
        return value if isinstance(value, str) else "|".join(re.escape(one) for one in value)
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value_of, text)


def resolve(prometheus, variable, values):
    """All values of a variable, by the two functions that the dashboards use."""
    query = replace(variable["query"]["query"], values)
    labels = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
    if labels:
        assert not variable["regex"]
        return prometheus.get(f"label/{labels.group(2)}/values", **{"match[]": labels.group(1)})
    expr = re.fullmatch(r"query_result\((.*)\)", query).group(1)
    pattern = re.compile(variable["regex"].strip("/").replace("(?<", "(?P<"))
    found = []
    for series, value in prometheus.query(expr):
        text = "{" + ",".join(f'{name}="{series[name]}"' for name in sorted(series)) + f"}} {value} 0"
        match = pattern.search(text)
        assert match, f"{variable['name']}: no match in {text}"
        found.append(match.groupdict().get("value", match.group(1)))
    return found


class Dashboard:
    def __init__(self, path):
        self.name = path.stem
        self.json = json.loads(path.read_text())
        self.variables = {one["name"]: one for one in self.json["templating"]["list"]}
        ids = [panel["id"] for panel in self.json["panels"]]
        assert len(set(ids)) == len(ids), "two panels of one id"
        assert self.json["id"] is None and self.json["schemaVersion"] >= 39

    def combinations(self, prometheus, pending=None, values=None):
        """Each set of values that a reader can choose."""
        pending = list(self.variables) if pending is None else pending
        values = dict(BUILT_IN) if values is None else values
        if not pending:
            return [values]
        variable = self.variables[pending[0]]
        if variable["type"] == "datasource":
            choices = [["uid"]]
        else:
            found = resolve(prometheus, variable, values)
            choices = [found] if variable["multi"] else found
        return list(itertools.chain.from_iterable(
            self.combinations(prometheus, pending[1:], {**values, pending[0]: choice}) for choice in choices))


def urls_of(panel):
    texts = []

    def walk(one):
        if isinstance(one, dict):
            texts.extend([one["url"]] if "url" in one else [])
            one = list(one.values())
        if isinstance(one, list):
            for each in one:
                walk(each)
    walk(panel)
    return texts


def check_links(boards, panel, fields, labels):
    """A link leads to a dashboard, sets variables that it has, and uses fields that there are."""
    for url in urls_of(panel):
        uid = re.match(r"/d/([^/]+)/", url).group(1)
        target = next(one for one in boards if one.json["uid"] == uid)
        for name in re.findall(r"var-(\w+)=", url):
            assert name in target.variables, f"{url}: {uid} has no variable {name}"
        for field in re.findall(r"__data\.fields\.(\w+)", url):
            assert field in fields, f"{url}: no field {field} among {sorted(fields)}"
        for label in re.findall(r"__field\.labels\.(\w+)", url):
            assert label in labels, f"{url}: no label {label}"


def fields_of(panel, labels):
    """The columns of a table after its transformations."""
    fields = set(labels) | {"Time"} | ({"Value"} if len(panel["targets"]) == 1 else
                                       {f"Value #{target['refId']}" for target in panel["targets"]})
    for transformation in panel.get("transformations", []):
        options = transformation["options"]
        names = set(options.get("excludeByName", {})) | set(options.get("renameByName", {}))
        assert names <= fields | {"__name__"}, f"{panel['title']}: no columns {names - fields}"
        fields -= set(options.get("excludeByName", {}))
        fields = {options.get("renameByName", {}).get(one, one) for one in fields}
    return fields


def check_panel(prometheus, boards, panel, choices):
    assert panel["type"] in PANELS, panel["type"]
    all_labels = set()
    for target in panel.get("targets", []):
        assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for values in choices:
            found = prometheus.query(replace(target["expr"], values))
            if found:
                break
        if not found and KAFKA_ONLY in target["expr"]:
            continue
        assert found, f"{panel['title']}: no data for {target['expr']}"
        labels = set.union(*(set(series) for series, _ in found))
        all_labels |= labels
        for name in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
            assert name in labels, f"{panel['title']}: no label {name} of {target['expr']}"
    if panel["type"] != "row":
        check_links(boards, panel, fields_of(panel, all_labels), all_labels)
    return len(panel.get("targets", []))


def check_rules(prometheus):
    count = 0
    for group in prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok" and not rule.get("lastError"), rule
            # An alert that does not fire has no series, but what it reads has.
            names = [rule["name"]] if rule["type"] == "recording" else []
            for name in names + METRIC.findall(rule["query"]):
                assert name == KAFKA_ONLY or prometheus.query(name), f"{rule['name']}: no data for {name}"
            count += 1
    return count


def main():
    prometheus = Prometheus(sys.argv[1])
    boards = [Dashboard(path) for path in sorted(pathlib.Path(sys.argv[2]).glob("dashboards/*.json"))]
    assert len({board.json["uid"] for board in boards}) == len(boards) == 3
    queries = 0
    for board in boards:
        choices = board.combinations(prometheus)
        assert choices, f"{board.name}: a variable has no value"
        for panel in board.json["panels"]:
            queries += check_panel(prometheus, boards, panel, choices)
        check_links(boards, {"links": board.json["links"]}, set(), set())
    rules = check_rules(prometheus)
    print(f"{queries} queries of {len(boards)} dashboards and {rules} rules have data")


if __name__ == "__main__":
    main()
