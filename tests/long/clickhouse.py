# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the statements of docs/clickhouse.md in order. The queues get the engine Null, which passes what is inserted
on to the views as Kafka does, and golden messages are inserted with the format and the schema of the document.
"""
import json
import os
import pathlib
import re
import sys
import tempfile

from chdb import session

GOLDEN = pathlib.Path("tests/golden/wire").resolve()
SCHEMA = pathlib.Path("proto/neutracer.proto").read_text().replace("\\", "\\\\").replace("'", "\\'")


def expect(condition, what):
    if not condition:
        sys.exit(f"clickhouse: {what}")


def rows(database, query):
    text = str(database.query(query, "JSONEachRow"))
    return [json.loads(line) for line in text.splitlines()]


def feed(database, queue, columns, message):
    names = ", ".join(re.findall(r"^\s+(`[^`]+`|\w+) \w", columns, re.M))
    structure = re.sub(r"\s+", " ", columns).strip()
    database.query(
        f"INSERT INTO {queue} SELECT {names} FROM file('{GOLDEN / message}', 'ProtobufSingle', '{structure}') SETTINGS"
        f" format_schema_source = 'string', format_schema_message_name = 'Envelope', format_schema = '{SCHEMA}'")


def main():
    blocks = re.findall(r"```sql\n(.*?);\n```", pathlib.Path("docs/clickhouse.md").read_text(), re.S)
    creates = [block for block in blocks if block.startswith("CREATE")]
    queries = [block for block in blocks if block.startswith("SELECT")]
    expect(len(creates) == 6 and len(queries) == 2, f"{len(creates)} tables, {len(queries)} queries")
    scratch = tempfile.TemporaryDirectory()
    os.chdir(scratch.name)  # the library keeps the schema in the current directory
    database, queues = session.Session(), {}
    database.query("CREATE DATABASE n")
    database.query("USE n")
    for create in creates:
        queue = re.match(r"CREATE TABLE (\w+) \((.*)\n\) ENGINE = Kafka SETTINGS(.*)", create, re.S)
        if queue:
            name, columns, settings = queue.groups()
            expect("'ProtobufSingle'" in settings and "'neutracer:Envelope'" in settings, f"{name}: {settings}")
            queues[name] = columns
            create = f"CREATE TABLE {name} ({columns}) ENGINE = Null"
        # The golden messages are older than that.
        database.query(re.sub(r" TTL .*", "", create))
    for message in ("incident/incident.bin", "window/window.bin"):
        for name, columns in queues.items():
            feed(database, name, columns, message)
    incidents = rows(database, "SELECT * FROM neutracer_incidents")
    expect(len(incidents) == 1, f"{len(incidents)} incidents")
    one = incidents[0]
    expect((one["id"], one["state"], one["job"], one["slowdown"]) == ("inc-0001", "firing", "llm-70b", 1.3125), one)
    expect(one["nodes"] == ["gpu-07", "gpu-08"] and 4002 in one["ranks"], one)
    windows = rows(database, "SELECT * FROM neutracer_windows")
    expect(len(windows) == 1, f"{len(windows)} windows")
    one = windows[0]
    expect((one["rank"], one["steps"], one["node"], one["tier"]) == (11, 2003, "gpu-07", "TIER_T2"), one)
    expect(abs(one["own_seconds"] - 2006 / 2003 / 1e9) < 1e-15 and one["ended_at"].startswith("2025-11-21"), one)
    for query in queries:
        expect(rows(database, query), f"no row: {query}")
    print(f"clickhouse: {len(creates)} tables and views, {len(queries)} queries")


if __name__ == "__main__":
    main()
