# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchers of pods on a cluster of played nodes: are they right, and how much memory do they take?

    scale.py CLUSTER.SH STATE WATCHERS AGENT WORK   (in the cluster's network, as test_scale.sh starts it)

Ten thousand pods on a hundred nodes that kwok plays, a watcher each; then one node of five hundred pods
and a hundred changes a second, which the whole agent sees too; then the API server is away for a
minute. What is right is what the API server itself says of a node's pods, read without our code.
"""
import concurrent.futures
import http.client
import itertools
import json
import os
import pathlib
import secrets
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

CLUSTER, STATE, WATCHERS, AGENT, WORK = sys.argv[1:6]
HOST, PORT = "10.99.0.1", 6443
API, CA = f"https://{HOST}:{PORT}", f"{STATE}/certs/apiserver.crt"
NODES, PODS, CROWD = 100, 10000, 500
SPACES = [f"team-{number}" for number in range(7)]
RATE, RATE_S = 100, 20
HANGS_S, AWAY_S = 20, 60
KNOWN_MAX = 2048  # NT_PODS_MAX of agent/identity/pods.h: the living and the gone
HEAP_MAX = 4 << 20  # of a watcher
LISTEN = "127.0.0.1:9481"


def say(*words):
    print(*words, flush=True)


def resident(process):
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(f"{int(line.split()[1]) / 1e3:.1f} MB resident" for line in lines if line.startswith("VmRSS:"))


# ---- the API server --------------------------------------------------------------------------------


class Api:
    """As the administrator, over a connection for each thread."""

    def __init__(self):
        self.token = pathlib.Path(STATE, "tokens").read_text().split(",")[0]
        self.trust = ssl.create_default_context(cafile=CA)
        self.own = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(16)

    def once(self, method, path, body):
        if not getattr(self.own, "link", None):
            self.own.link = http.client.HTTPSConnection(HOST, PORT, context=self.trust, timeout=60)
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        try:
            self.own.link.request(method, path, json.dumps(body) if body else None, head)
            reply = self.own.link.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException):
            self.own.link.close()
            self.own.link = None
            return 0, b"no answer"

    def call(self, method, path, body=None, fine=(200, 201)):
        """A server that has just come up may refuse for a while."""
        for _ in range(60):
            status, text = self.once(method, path, body)
            if status in fine:
                return json.loads(text)
            if status and status != 429 and status < 500:
                break
            time.sleep(0.5)
        raise AssertionError(f"{method} {path}: {status} {text[:300]}")

    def each(self, function, items):
        return list(self.pool.map(function, items))

    def pods(self):
        return self.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName!=node-1")["items"]


# ---- pods, and who they are ------------------------------------------------------------------------

numbers = itertools.count()


def pod_of(node, owners):
    """Of jobs of all sorts, in turns, as their controllers mark them."""
    number = next(numbers)
    job, index = f"train-{number % 50}", str(number // 5)
    name, space = f"{job}-{number}", SPACES[number % 7]
    marks, references = {}, []
    match number % 5:
        case 0:
            marks = {"jobset.sigs.k8s.io/jobset-name": job, "jobset.sigs.k8s.io/replicatedjob-name": "worker",
                     "jobset.sigs.k8s.io/replicatedjob-replicas": "2", "jobset.sigs.k8s.io/job-index": "1",
                     "batch.kubernetes.io/job-completion-index": index}
        case 1:
            marks = {"training.kubeflow.org/job-name": job, "training.kubeflow.org/replica-type": "worker",
                     "training.kubeflow.org/replica-index": index}
        case 2:
            marks = {"leaderworkerset.sigs.k8s.io/name": job, "leaderworkerset.sigs.k8s.io/group-index": "3",
                     "leaderworkerset.sigs.k8s.io/worker-index": index}
        case 3:
            marks = {"batch.kubernetes.io/job-name": job, "batch.kubernetes.io/job-completion-index": index}
        case 4:
            references = [owners[space]]
    return {"metadata": {"name": name, "namespace": space, "labels": marks, "ownerReferences": references},
            "spec": {"nodeName": node, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
                     "containers": [{"name": f"rank-{number % 3}", "image": "played"}]}}


def workload(metadata):
    """Kind, job and replica by the documentation of those controllers."""
    marks = metadata.get("labels") or {}
    index = marks.get("batch.kubernetes.io/job-completion-index", "")
    if "jobset.sigs.k8s.io/jobset-name" in marks:
        return "JobSet", marks["jobset.sigs.k8s.io/jobset-name"], f"worker-1-{index}"
    if "training.kubeflow.org/job-name" in marks:
        return "Kubeflow", marks["training.kubeflow.org/job-name"], f"worker-{marks['training.kubeflow.org/replica-index']}"
    if "leaderworkerset.sigs.k8s.io/name" in marks:
        return ("LeaderWorkerSet", marks["leaderworkerset.sigs.k8s.io/name"],
                f"3-{marks['leaderworkerset.sigs.k8s.io/worker-index']}")
    if "batch.kubernetes.io/job-name" in marks:
        return "Job", marks["batch.kubernetes.io/job-name"], index
    owner = metadata["ownerReferences"][0]
    return owner["kind"], owner["name"], ""


def questions(pod):
    """(line, answer) for each of its containers, or for one that nobody knows of yet."""
    metadata = pod["metadata"]
    statuses = [one for one in pod["status"].get("containerStatuses", []) if one.get("containerID")]
    for one in statuses or [{"name": "", "containerID": "0" * 64}]:
        line = f"find {pod['spec']['nodeName']} {metadata['uid']} {one['containerID'].removeprefix('containerd://')}"
        yield line, "\t".join((metadata["namespace"], metadata["name"], metadata["uid"], one["name"],
                               *workload(metadata)))


def runs(pod):
    return any(one.get("containerID") for one in pod["status"].get("containerStatuses", []))


# ---- the watchers ----------------------------------------------------------------------------------


class Watchers:
    """A process of them."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.most = 0  # pods that one of them has known, with those that are gone
        self.process = subprocess.Popen([WATCHERS, API, f"{WORK}/token", CA, *nodes], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, lines):
        answers = []
        for start in range(0, len(lines), 100):
            some = lines[start:start + 100]
            self.process.stdin.write("".join(f"{line}\n" for line in some))
            self.process.stdin.flush()
            answers += [self.process.stdout.readline().rstrip("\n") for _ in some]
        return answers

    def stats(self):
        stats = json.loads(self.ask(["stats"])[0])
        self.most = max(self.most, *(one["pods"] + one["gone"] for one in stats["nodes"].values()))
        return stats

    def sum(self, key):
        return sum(one[key] for one in self.stats()["nodes"].values())

    def memory(self):
        stats = self.stats()
        heap = stats["heap_bytes"] / len(self.nodes)
        assert heap < HEAP_MAX, f"a watcher takes {heap} bytes"
        assert self.most <= KNOWN_MAX, f"a watcher knows {self.most} pods"
        return (f"{heap / 1e3:.0f} kB of heap each, {resident(self.process)} for {len(self.nodes)}, "
                f"at most {self.most} pods known to one")

    def wrong(self, pods, gone=()):
        """What they get wrong of these pods of theirs; each has to know its own and no others."""
        mine = [pod for pod in pods if pod["spec"]["nodeName"] in self.nodes]
        asked = [*itertools.chain(*map(questions, mine)), *gone]
        wrong = [f"{line}: '{found}', wanted '{wanted}'" for (line, wanted), found in
                 zip(asked, self.ask([line for line, _ in asked])) if found != wanted]
        there = dict.fromkeys(self.nodes, 0)
        for pod in mine:
            there[pod["spec"]["nodeName"]] += 1
        known = {node: one["pods"] for node, one in self.stats()["nodes"].items()}
        return wrong + [f"{node}: {known[node]} pods known, {there[node]} there"
                        for node in self.nodes if known[node] != there[node]]

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(30) == 0, "watchers end badly"


def until_right(api, watchers, count, limit_s, gone=()):
    """Until they say of each pod what the API server says of it: those pods, and how long it took."""
    start = time.monotonic()
    wrong = ["the number of pods"]
    while wrong:
        assert time.monotonic() - start < limit_s, f"{len(wrong)} wrong after {limit_s} s: {wrong[:5]}"
        time.sleep(0.2)
        if sum(one.sum("pods") for one in watchers) != count:
            continue
        pods = api.pods()
        wrong = [line for one in watchers for line in one.wrong(pods, [
            question for question in gone if question[0].split()[1] in one.nodes])]
    return pods, time.monotonic() - start


# ---- the scenes ------------------------------------------------------------------------------------


def play(api, nodes):
    """Nodes, namespaces, and in each a job to own pods."""
    for name in nodes:
        api.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}})
    api.call("POST", "/api/v1/nodes", {"metadata": {"name": "crowd"}})
    for space in SPACES:
        api.call("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        api.call("POST", f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}}, (201, 409))
    owners = {}
    for space in SPACES:
        made = api.call("POST", f"/apis/batch/v1/namespaces/{space}/jobs", {
            "metadata": {"name": "owner"},
            "spec": {"template": {"spec": {"restartPolicy": "Never",
                                           "containers": [{"name": "rank", "image": "played"}]}}}})
        owners[space] = {"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "controller": True,
                         "uid": made["metadata"]["uid"]}
    return owners


def make(api, pod):
    return api.call("POST", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod, (200, 201, 409))


def remove(api, pod):
    where = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    return api.call("DELETE", f"{where}?gracePeriodSeconds=0", None, (200, 202, 404))


def replace(api, pods, owners):
    """Each is deleted, and another one made on its node, all at the same time."""
    todo = [it for pod in pods for it in ((remove, pod), (make, pod_of(pod["spec"]["nodeName"], owners)))]
    api.each(lambda it: it[0](api, it[1]), todo)
    return [question for pod in pods for question in questions(pod)]


def restart(api, pod):
    """Of its container, which has another id from then on."""
    where = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
    status = {"name": pod["spec"]["containers"][0]["name"], "containerID": f"containerd://{secrets.token_hex(32)}",
              "image": "played", "imageID": ""}
    return api.call("PATCH", where, {"status": {"containerStatuses": [status]}}, (200, 404))


def change(api, node, pods, owners):
    """A hundred times a second: a container restarts, a pod goes, another comes."""
    living, gone, start = list(pods), [], time.monotonic()
    done = []
    for number in range(RATE * RATE_S):
        time.sleep(max(0, start + number / RATE - time.monotonic()))
        match number % 5:
            case 0 | 1 | 2:
                done.append(api.pool.submit(restart, api, living[number % len(living)]))
            case 3:
                pod = living.pop(number * 7 % len(living))
                gone += questions(pod)
                done.append(api.pool.submit(remove, api, pod))
            case 4:
                done.append(api.pool.submit(make, api, pod_of(node, owners)))
    for one in done:
        one.result()
    return gone, len(done) / (time.monotonic() - start)


class Agent:
    """The whole of it, as if it were on that node."""

    def __init__(self, node):
        log = open(f"{WORK}/agent.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [AGENT, f"--node={node}", f"--kube-api={API}", f"--kube-token-file={WORK}/token", f"--kube-ca-file={CA}",
             f"--bus=spool:{WORK}/spool", "--shelter=", "--pod-resources=", f"--listen={LISTEN}"],
            stdout=log, stderr=subprocess.STDOUT)

    def get(self, path):
        with urllib.request.urlopen(f"http://{LISTEN}/{path}", timeout=5) as reply:
            return reply.read().decode()

    def metric(self, name):
        try:
            lines = self.get("metrics").splitlines()
        except OSError:
            return -1
        return next(int(float(line.split()[1])) for line in lines if line.startswith(f"neutracer_agent_{name} "))

    def until(self, name, value, limit_s):
        start = time.monotonic()
        while self.metric(name) != value:
            assert self.process.poll() is None, pathlib.Path(WORK, "agent.log").read_text()
            assert time.monotonic() - start < limit_s, f"the agent's {name} is {self.metric(name)}, wanted {value}"
            time.sleep(0.3)

    def end(self):
        self.process.terminate()
        assert self.process.wait(30) == 0, "the agent ends badly"


def on(api, node):
    return api.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={node}")["items"]


def until_right_on(api, watcher, node, limit_s, gone=()):
    start = time.monotonic()
    while wrong := watcher.wrong(on(api, node), gone):
        assert time.monotonic() - start < limit_s, f"{len(wrong)} wrong after {limit_s} s: {wrong[:5]}"
        time.sleep(0.2)
    return time.monotonic() - start


def crowd(api, owners, node):
    """One node of many pods that change all the time; kwok would be too slow to play it."""
    one, agent = Watchers([node]), Agent(node)
    try:
        agent.until("kube_synced", 1, 20)
        empty = resident(agent.process)
        api.each(lambda pod: make(api, pod), [pod_of(node, owners) for _ in range(CROWD)])
        api.each(lambda pod: restart(api, pod), on(api, node))
        gone, rate = change(api, node, on(api, node), owners)
        took = until_right_on(api, one, node, 10, gone)
        agent.until("kube_pods", CROWD, 10)
        say(f"a node of {CROWD} pods and {rate:.0f} changes a second: right {took:.1f} s after the last,"
            f" {one.sum('events')} events; {one.memory()}")
        # Pods that are gone are remembered as long as there is room.
        while one.sum("forgotten") == 0:
            replace(api, on(api, node), owners)
            until_right_on(api, one, node, 20)
        agent.until("kube_pods", CROWD, 10)
        assert one.sum("over_cap") == 0
        say(f"all of them replaced until the oldest of those gone were forgotten: {one.memory()}")
        say(f"the whole agent there: {empty} with no pods, {resident(agent.process)} at the end")
        return one, agent
    except BaseException:
        agent.process.kill()
        one.process.kill()
        raise


def cluster(*args):
    subprocess.run([CLUSTER, *args], check=True, stdout=subprocess.DEVNULL)


def away(api, watchers, agent, pods, owners):
    """The API server hangs, dies, and comes back to find that its watchers are behind."""
    def all_right():
        wrong = [line for one in watchers for line in one.wrong(pods)]
        assert not wrong, f"{len(wrong)} wrong without an API server: {wrong[:5]}"

    start = time.monotonic()
    os.kill(int(pathlib.Path(STATE, "pid", "apiserver").read_text()), signal.SIGSTOP)
    all_right()
    time.sleep(max(0, start + HANGS_S - time.monotonic()))
    all_right()
    cluster("kill", "apiserver")
    while sum(one.sum("synced") for one in watchers):
        assert time.monotonic() - start < AWAY_S, "watchers do not notice that the API server is dead"
        time.sleep(0.5)
    time.sleep(max(0, start + AWAY_S - time.monotonic()))
    asking = time.monotonic()
    all_right()
    asking = time.monotonic() - asking
    assert agent.get("readyz"), "without an API server the agent is not ready"
    cluster("start", "apiserver")
    wait_ready(api)
    back = time.monotonic()
    gone = replace(api, pods[::20], owners)
    changed = time.monotonic()
    until_right(api, watchers, len(pods), 120, gone)
    took = time.monotonic() - changed
    agent.until("kube_synced", 1, 60)
    agent.until("kube_pods", CROWD, 10)
    expired = sum(one.sum("expired") for one in watchers)
    assert expired, "no watch was told that it is too far behind (410)"
    say(f"API server away for {back - start:.0f} s: {len(pods)} pods known all the time, asked for in {asking:.1f} s;"
        f" {len(pods[::20])} replaced as soon as it was back, all right {took:.1f} s after that,"
        f" {expired} watches had expired (410)")


def wait_ready(api):
    for _ in range(300):
        if api.once("GET", "/readyz", None)[0] == 200:
            return
        time.sleep(0.2)
    raise AssertionError("the API server does not come back")


def main():
    api, start = Api(), time.monotonic()
    nodes = [f"played-{number}" for number in range(NODES)]
    owners = play(api, nodes)
    wanted = [pod_of(nodes[number % NODES], owners) for number in range(PODS)]
    api.each(lambda pod: make(api, pod), wanted[:PODS // 2])
    # They list half of the pods, and are told of the others.
    watchers = Watchers(nodes)
    api.each(lambda pod: make(api, pod), wanted[PODS // 2:])
    made = time.monotonic() - start
    pods, took = until_right(api, [watchers], PODS, 120)
    say(f"{PODS} pods on {NODES} nodes made in {made:.0f} s; all right {took:.1f} s after that: {watchers.memory()}")

    gone = replace(api, pods[::10], owners)
    pods, took = until_right(api, [watchers], PODS, 120, gone)
    say(f"{len(gone)} pods replaced: all right after {took:.1f} s, those that are gone too; kwok has let"
        f" {sum(map(runs, pods))} pods run; {watchers.memory()}")

    one, agent = crowd(api, owners, "crowd")
    try:
        pods, _ = until_right(api, [watchers, one], PODS + CROWD, 120)
        away(api, [watchers, one], agent, pods, owners)
        say(f"at the end: {watchers.memory()}")
        watchers.end()
        one.end()
        agent.end()
    finally:
        for it in (watchers, one, agent):
            it.process.kill()


main()
