# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart as `helm template` renders it, and the list of tests. For chart.py and its parts."""
import functools
import pathlib
import subprocess
import sys

import yaml

HELM, BIN = sys.argv[1], sys.argv[2]
CHART = "deploy/helm/neutracer"
SETS = sorted(path.stem for path in pathlib.Path("tests/chart/values").glob("*.yaml"))
WORKLOADS = ("DaemonSet", "StatefulSet", "Job", "Pod")
tests = []
POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
# Of all clusters or of one: an object in no namespace is named by release and namespace.
GLOBAL = ("ClusterRole", "ClusterRoleBinding", *POLICIES)
CAPABILITIES = ["BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH"]


def test(function):
    tests.append(function)
    return function


def helm(*args, release="neutracer", namespace="here", kube="1.34.0", policies=("v1",)):
    """policies: the versions in which the cluster has the kind MutatingAdmissionPolicy."""
    kinds = [word for version in policies
             for word in ("--api-versions", f"admissionregistration.k8s.io/{version}/MutatingAdmissionPolicy")]
    return subprocess.run([HELM, "template", release, CHART, "--namespace", namespace,
                           "--kube-version", kube, *kinds, *args], capture_output=True, text=True)


@functools.cache
def render(values="default", *sets, **where):
    """The objects for a set of values, and more that are set."""
    extra = [word for one in sets for word in ("--set", one)]
    done = helm("--values", f"tests/chart/values/{values}.yaml", *extra, **where)
    return objects_of(done)


def objects_of(done):
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def refused(*args, **where):
    done = helm(*args, **where)
    assert done.returncode != 0, f"{args} is taken"
    return done.stderr


def find(objects, kind, end=""):
    """The one object of that kind whose name ends so."""
    found = [one for one in objects
             if one["kind"] == kind and one["metadata"]["name"].endswith(end)]
    assert len(found) == 1, f"{len(found)} of kind {kind} end with '{end}'"
    return found[0]


def kinds(objects):
    return sorted({one["kind"] for one in objects})


def pod_of(one):
    """The pod's metadata and spec of a workload."""
    template = one if one["kind"] == "Pod" else one["spec"]["template"]
    return template["metadata"], template["spec"]


def workloads(objects):
    return [one for one in objects if one["kind"] in WORKLOADS]


def component(one):
    return one["metadata"]["labels"]["app.kubernetes.io/component"]


def container(one, name):
    return next(c for c in pod_of(one)[1]["containers"] if c["name"] == name)


def settings(objects, program):
    return yaml.safe_load(find(objects, "ConfigMap", program)["data"][f"{program}.yaml"])


def same(got, want):
    assert got == want, f"got {got}, want {want}"


def holds(words, text):
    assert words in text, f"'{words}' is not in: {text}"
