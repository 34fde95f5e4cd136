#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches an agent and a healthy job beside it while something attacks, until SIGTERM.

    watch.py AGENT_PID METRICS_FILE URL TOKEN_FILE JOB_ID RANKS

Prints one JSON object at the end:

    age        seconds, the largest age of the agent's metrics file
    peak_kb    the largest sum at one time: VmHWM of the agent, and of each child what it does not share
               with the agent, VmHWM without the pages of files
    agent      "running", or what else became of the process
    state      states other than running that the job was in, and "gone"
    live       the fewest live ranks of it
    ranks      states other than running of its ranks
    complete   the smallest completeness of it that was stated
    windows    windows judged of it meanwhile
    silent     seconds, the longest time without an answer of the aggregator
    seconds    how long it watched
"""
import json
import os
import signal
import sys
import time
import urllib.request

PAUSE = 0.5

pid, metrics, url, token_file, job, size = sys.argv[1:]
token = open(token_file).readline().split()[0]
ended = False
seen = {"age": 0, "peak_kb": 0, "agent": "running", "state": set(), "live": int(size), "ranks": set(),
        "complete": 1, "windows": 0, "silent": 0, "seconds": 0}


def end(_number, _frame):
    global ended
    ended = True


def ask(path):
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def peak_kb(process, is_child=False):
    try:
        status = open(f"/proc/{process}/status").read()
        children = open(f"/proc/{process}/task/{process}/children").read().split()
    except OSError:
        return 0
    kb = {line.split(":")[0]: int(line.split()[1]) for line in status.splitlines() if line.endswith(" kB")}
    own = kb.get("VmHWM", 0) - (kb.get("RssFile", 0) if is_child else 0)
    return own + sum(peak_kb(child, True) for child in children)


def look_at_agent():
    try:
        seen["age"] = max(seen["age"], time.time() - os.stat(metrics).st_mtime)
    except OSError:
        seen["agent"] = "without metrics"
    seen["peak_kb"] = max(seen["peak_kb"], peak_kb(pid))
    if not os.path.exists(f"/proc/{pid}"):
        seen["agent"] = "ended"


def look_at_job():
    row = ask(f"/api/v1/jobs/{job}")
    if row["state"] != "running":
        seen["state"].add(row["state"])
    seen["live"] = min(seen["live"], row["live"])
    if row["completeness"] is not None:
        seen["complete"] = min(seen["complete"], row["completeness"])
    seen["ranks"] |= {rank["state"] for rank in ask(f"/api/v1/jobs/{job}/ranks")["items"]} - {"running"}
    return row["windows"]


signal.signal(signal.SIGTERM, end)
begin = answered = time.monotonic()
first = None
while not ended:
    look_at_agent()
    try:
        windows = look_at_job()
        first = windows if first is None else first
        seen["windows"] = windows - first
        answered = time.monotonic()
    except (OSError, ValueError, KeyError):
        seen["silent"] = max(seen["silent"], time.monotonic() - answered)
    time.sleep(PAUSE)
look_at_agent()
seen["seconds"] = time.monotonic() - begin
seen["state"], seen["ranks"] = sorted(seen["state"]), sorted(seen["ranks"])
print(json.dumps({key: round(value, 2) if isinstance(value, float) else value for key, value in seen.items()}))
