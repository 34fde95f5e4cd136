# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy that gives the libraries of GPU time to pods."""
import json
import pathlib
import re
import subprocess
import tempfile

from rendering import POLICIES, SETS, find, holds, kinds, refused, render, same, test


@test
def pods_with_the_label_get_the_library_of_gpu_time_where_that_is_enabled():
    for name in SETS:
        same(set(POLICIES) & set(kinds(render(name))), set(POLICIES) if name == "gpu-time" else set())
    policy = find(render("gpu-time"), "MutatingAdmissionPolicy")["spec"]
    binding = find(render("gpu-time"), "MutatingAdmissionPolicyBinding")["spec"]
    same(binding, {"policyName": "neutracer-here-gpu-time"})
    # No pod is refused, and only new ones are looked at.
    same((policy["failurePolicy"], policy["reinvocationPolicy"]), ("Ignore", "Never"))
    match = policy["matchConstraints"]
    same(match["resourceRules"], [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}])
    same(match["objectSelector"], {"matchLabels": {"team/gpu-time": "true"}})
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "here"]}
    same(match["namespaceSelector"], {"matchLabels": {"team": "ml"},
                                      "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}, elsewhere]})
    plain = find(render("default", "gpuTime.enabled=true"), "MutatingAdmissionPolicy")["spec"]["matchConstraints"]
    same(plain["objectSelector"], {"matchLabels": {"neutracer.io/gpu-time": "true"}})
    same(plain["namespaceSelector"], {"matchExpressions": [elsewhere]})


def policy_of(*sets):
    return find(render("gpu-time", *sets), "MutatingAdmissionPolicy")["spec"]


def patch(*sets):
    (mutation,) = policy_of(*sets)["mutations"]
    same(mutation["patchType"], "JSONPatch")
    return mutation["jsonPatch"]["expression"]


@test
def the_library_comes_from_the_release_s_image_by_a_restricted_container():
    digest = "sha256:" + "0" * 64
    holds(f'image: "registry.example/nt@{digest}",', patch("image.repository=registry.example/nt", f"image.digest={digest}"))
    # A registry that is away keeps no pod from starting.
    for pull, wanted in (("Always", "IfNotPresent"), ("IfNotPresent", "IfNotPresent"), ("Never", "Never")):
        holds(f'imagePullPolicy: "{wanted}",', patch(f"image.pullPolicy={pull}"))
    text = patch()
    for words in ("runAsNonRoot: true", "runAsUser: 65532", "allowPrivilegeEscalation: false", "privileged: false",
                  "readOnlyRootFilesystem: true", 'capabilities{drop: ["ALL"]}', 'seccompProfile{type: "RuntimeDefault"}',
                  'requests: {"cpu":"1","memory":"64Mi"}, limits: {"cpu":"1","memory":"64Mi"}',
                  '"cd /usr/lib/neutracer && install -m 644 libnccl-profiler-neutracer.so libneutracer-cupti.so /to/ || :"',
                  'env{name: "CUDA_INJECTION64_PATH", value: "/run/neutracer/gpu-time/libneutracer-cupti.so"}',
                  'env{name: "NCCL_PROFILER_PLUGIN", value: "/run/neutracer/gpu-time/libnccl-profiler-neutracer.so"}',
                  'mountPath: "/run/neutracer/gpu-time", readOnly: true'):
        holds(words, text)
    # Requests are limits: a pod whose class is Guaranteed keeps it.
    text = find(render("default", "gpuTime.enabled=true"), "MutatingAdmissionPolicy")["spec"]["mutations"][0]["jsonPatch"]["expression"]
    holds('requests: {"cpu":"100m","memory":"32Mi"}, limits: {"cpu":"100m","memory":"32Mi"}', text)
    # What is missing is nothing, and not null.
    holds("requests: {}, limits: {}", patch("gpuTime.resources=null"))


@test
def a_variable_is_added_where_the_container_has_none_of_that_name():
    def condition(*sets):
        (one,) = [c for c in policy_of(*sets)["matchConditions"] if c["name"] == "a-container-lacks-a-variable"]
        return one["expression"]
    cuda, nccl = (f'!c.?env.orValue([]).exists(e, e.name == "{name}")' for name in ("CUDA_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"))
    same(condition(), f"object.spec.containers.exists(c, {cuda} || {nccl})")
    for lacks in (cuda, nccl):
        holds(f'variables.containers.filter(c, {lacks}).map(c, JSONPatch{{op: "add"', patch())
    # NCCL loads one plugin: its variable can be left out, and its library with it.
    same(condition("gpuTime.nccl=false"), f"object.spec.containers.exists(c, {cuda})")
    holds(f'variables.containers.filter(c, {cuda}).map(c, JSONPatch{{op: "add"', patch("gpuTime.nccl=false"))
    assert "nccl" not in str(policy_of("gpuTime.nccl=false")).lower(), patch("gpuTime.nccl=false")


@test
def the_init_container_copies_what_the_image_has():
    """An older image lacks a library, and another image both."""
    command = re.search(r'command: (\[.*?\]), ', patch())[1]
    both = ("libneutracer-cupti.so", "libnccl-profiler-neutracer.so")
    for there in (both, both[:1], both[1:], None):
        with tempfile.TemporaryDirectory() as root:
            image, to = pathlib.Path(root, "image"), pathlib.Path(root, "to")
            to.mkdir()
            if there is not None:
                image.mkdir()
            for name in there or ():
                (image / name).write_text(name)
            words = [word.replace("/usr/lib/neutracer", str(image)).replace("/to/", f"{to}/") for word in json.loads(command)]
            done = subprocess.run(words, capture_output=True, text=True)
            same(done.returncode, 0)
            same(sorted((one.name, one.stat().st_mode & 0o777) for one in to.iterdir()),
                 sorted((name, 0o644) for name in there or ()))


@test
def the_policy_is_of_the_newest_version_that_the_cluster_has():
    for versions, wanted in ((("v1", "v1beta1"), "v1"), (("v1alpha1", "v1beta1"), "v1beta1"), (("v1alpha1",), "v1alpha1")):
        objects = render("gpu-time", policies=versions)
        same([find(objects, kind)["apiVersion"] for kind in POLICIES], [f"admissionregistration.k8s.io/{wanted}"] * 2)
    # Validating policies have the same group.
    said = refused("--set", "gpuTime.enabled=true", "--api-versions", "admissionregistration.k8s.io/v1", policies=())
    holds("gpuTime.enabled needs the kind MutatingAdmissionPolicy, which this cluster does not serve", said)
    holds("add libraries and variables to the pods by hand: docs/kubernetes.md, GPU time", said)
