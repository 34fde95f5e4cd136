# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server says of all that the chart renders: server.py HELM KUBECTL...  Prints TAP.

Every object of every set of values is tried with strict validation and the server's own admission, and
nothing is kept. The namespace is warned of what is not "restricted": that must be the agent alone.
"""
import os
import pathlib
import re
import subprocess
import sys

import yaml

HELM, KUBECTL = sys.argv[1], sys.argv[2:]
CHART = "deploy/helm/neutracer"
# Of each run its own: without controllers one that is deleted never goes.
NAMESPACE = f"nt-chart-objects-{os.getpid()}"
SETS = sorted(path.stem for path in pathlib.Path("tests/chart/values").glob("*.yaml"))
LEVELS = {"enforce": "privileged", "warn": "restricted"}
# What Kubernetes itself does not know.
FOREIGN = ("monitoring.coreos.com/v1",)


def kubectl(*args, text=None):
    return subprocess.run([*KUBECTL, *args], input=text, capture_output=True, text=True)


def rendered(name):
    done = subprocess.run([HELM, "template", "neutracer", CHART, "--namespace", NAMESPACE, "--kube-version", "1.34.0",
                           "--api-versions", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy",
                           "--values", f"tests/chart/values/{name}.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one and one["apiVersion"] not in FOREIGN]


def taken(name):
    """All objects are, word by word, and only the agent breaks the level restricted."""
    for one in rendered(name):
        what = f"{one['kind']} {one['metadata']['name']}"
        done = kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", text=yaml.safe_dump(one))
        assert done.returncode == 0, f"{what}: {done.stderr}"
        # A later Kubernetes has the same in a newer version of its API, and this one does not.
        warnings = [text for text in re.findall(r"^Warning: (.*)", done.stderr, re.M) if " is deprecated in " not in text]
        if one["kind"] == "DaemonSet":
            assert len(warnings) == 1, f"{what}: {warnings}"
            words = ("host namespaces (hostPID=true)", "unrestricted capabilities", "runAsUser=0")
            assert all(word in warnings[0] for word in words), warnings[0]
        else:
            assert not warnings, f"{what}: {warnings}"


def strict():
    """The test can fail: a field that there is not, and a pod that is not restricted."""
    one = next(one for one in rendered("default") if one["kind"] == "StatefulSet")
    one["spec"]["template"]["spec"]["hostPid"] = True
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", text=yaml.safe_dump(one))
    assert done.returncode != 0 and "hostPid" in done.stderr, done.stderr
    del one["spec"]["template"]["spec"]["hostPid"]
    one["spec"]["template"]["spec"]["hostPID"] = True
    done = kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", text=yaml.safe_dump(one))
    assert "hostPID=true" in done.stderr, done.stderr


def main():
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in LEVELS.items()}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    # An API server alone makes no account for a namespace; where there are controllers, one of them does.
    for one in (namespace, account):
        done = kubectl("create", "--filename=-", text=yaml.safe_dump(one))
        if done.returncode and "(AlreadyExists)" not in done.stderr:
            sys.exit(done.stderr)
    print(f"1..{len(SETS) + 1}")
    bad = 0
    for number, (name, test) in enumerate([(one, taken) for one in SETS] + [("strict", None)], 1):
        try:
            test(name) if test else strict()
            print(f"ok {number} - an_api_server_takes_{name.replace('-', '_')}")
        except AssertionError as error:
            bad += 1
            print(f"not ok {number} - {name}\n# {error}")
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    sys.exit(1 if bad else 0)


main()
