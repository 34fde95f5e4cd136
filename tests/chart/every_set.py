# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every set of values."""
import subprocess
import tempfile

from rendering import (BIN, CAPABILITIES, CHART, GLOBAL, HELM, SETS, component, container, find, holds,
                       pod_of, render, same, settings, test, workloads)


@test
def no_container_is_privileged_or_may_become_so():
    for name in SETS:
        for one in workloads(render(name)):
            for c in pod_of(one)[1]["containers"]:
                context = c["securityContext"]
                same(context.get("privileged", False), False)
                same(context["allowPrivilegeEscalation"], False)
                same(context["capabilities"]["drop"], ["ALL"])
                # The image of a Kafka is not ours: it writes its settings beside its programs.
                same(context.get("readOnlyRootFilesystem", False), c["name"] != "kafka")


@test
def only_the_agent_has_more_than_the_level_restricted():
    for name in SETS:
        for one in workloads(render(name)):
            if component(one) == "agent":
                continue
            _, spec = pod_of(one)
            for key in ("hostPID", "hostNetwork", "hostIPC"):
                assert key not in spec
            same(spec["securityContext"]["runAsNonRoot"], True)
            same(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            assert spec["securityContext"]["runAsUser"] > 0
            for c in spec["containers"]:
                assert not c["securityContext"]["capabilities"].get("add")
            for volume in spec.get("volumes", []):
                kind = [key for key in volume if key != "name"]
                assert kind[0] in ("configMap", "secret", "emptyDir", "projected"), volume


@test
def the_agent_has_the_documented_capabilities_and_the_host_s_processes():
    for name in SETS:
        one = find(render(name), "DaemonSet")
        _, spec = pod_of(one)
        more = ["SYS_ADMIN"] if name == "all-on" else []
        same(container(one, "agent")["securityContext"]["capabilities"]["add"], CAPABILITIES + more)
        same(spec["hostPID"], True)
        want = None if name == "all-off" else {"type": "RuntimeDefault"}
        same(spec["securityContext"].get("seccompProfile"), want)
        assert "hostNetwork" not in spec and "hostIPC" not in spec
        paths = [v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v]
        same(paths, ["/var/snap/kubelet/pod-resources", "/var/lib/neutracer/shelter"] if name == "all-on" else [])
        mounted = {m["mountPath"] for m in container(one, "agent")["volumeMounts"]}
        same(settings(render(name), "agent")["pod-resources"] != "", "/run/neutracer/pod-resources" in mounted)


@test
def every_container_has_requests_and_a_limit_of_memory_and_none_of_cpu():
    for name in SETS:
        for one in workloads(render(name)):
            for c in pod_of(one)[1]["containers"]:
                same(sorted(c["resources"]["requests"]), ["cpu", "memory"])
                same(sorted(c["resources"]["limits"]), ["memory"])


@test
def no_pod_takes_settings_from_the_services_beside_it():
    for name in SETS:
        for one in workloads(render(name)):
            same(pod_of(one)[1]["enableServiceLinks"], False)


@test
def who_asks_no_api_has_no_token_for_it():
    quiet = render("default", "aggregator.kubernetes.events=false")
    for objects, who in ((render("default"), ["agent", "aggregator"]), (render("own-kafka"), ["agent", "aggregator"]),
                         (quiet, ["agent"])):
        for one in workloads(objects):
            # The topics are made under the aggregator's name, and ask nobody but Kafka.
            asks = component(one) in who and one["kind"] in ("DaemonSet", "StatefulSet")
            same(pod_of(one)[1].get("automountServiceAccountToken", True), asks)


@test
def probes_ask_for_the_program_alone():
    for name in SETS:
        for kind, end, program in (("DaemonSet", "", "agent"), ("StatefulSet", "aggregator", "aggregator")):
            c = container(find(render(name), kind, end), program)
            same(c["livenessProbe"]["httpGet"]["path"], "/healthz")
            same(c["readinessProbe"]["httpGet"]["path"], "/readyz")
            ports = [port["name"] for port in c["ports"]]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert c[probe]["httpGet"]["port"] in ports
    # Only the aggregator's readiness tells of Kafka: what starts and restarts a pod does not.
    same(c["startupProbe"]["httpGet"]["path"], "/healthz")


@test
def selectors_find_the_pods_that_they_mean():
    for name in SETS:
        objects = render(name)
        pods = {component(one): pod_of(one)[0]["labels"] for one in workloads(objects)}

        def found(selector, objects_labels=pods):
            return [who for who, labels in objects_labels.items()
                    if all(labels.get(key) == value for key, value in selector.items())]

        for one in objects:
            spec = one.get("spec", {})
            selector = spec.get("podSelector", spec.get("selector"))
            if not selector:
                continue
            selector = selector.get("matchLabels", selector)
            if one["kind"] == "ServiceMonitor":
                services = {s["metadata"]["name"]: s["metadata"]["labels"] for s in objects if s["kind"] == "Service"}
                selector = dict(selector, **{e["key"]: e["values"][0] for e in spec["selector"]["matchExpressions"]})
                same(found(selector, services), ["neutracer-aggregator"])
            else:
                same(found(selector), [component(one)])


@test
def services_lead_to_ports_that_there_are():
    for name in SETS:
        objects = render(name)
        ports = {}
        for one in workloads(objects):
            for c in pod_of(one)[1]["containers"]:
                ports.setdefault(component(one), []).extend(p["name"] for p in c.get("ports", []))
        for one in objects:
            if one["kind"] == "Service":
                for port in one["spec"]["ports"]:
                    assert port["targetPort"] in ports[component(one)]


@test
def volumes_are_mounted_and_mounts_have_volumes():
    for name in SETS:
        for one in workloads(render(name)):
            spec = pod_of(one)[1]
            volumes = {v["name"] for v in spec.get("volumes", [])}
            volumes |= {c["metadata"]["name"] for c in one["spec"].get("volumeClaimTemplates", [])}
            mounts = {m["name"] for c in spec["containers"] for m in c.get("volumeMounts", [])}
            same(mounts, volumes)


@test
def settings_are_options_of_the_programs():
    def table(*command):
        text = subprocess.run([*command, "--print-options"], check=True, capture_output=True, text=True).stdout
        return [line.split("\t") for line in text.splitlines()]

    for program in ("agent", "aggregator"):
        rows = table(f"{BIN}/neutracer-{program}")
        keys, variables = {row[2] for row in rows}, {row[1] for row in rows}
        # The command is at hand in the aggregator's pod.
        variables |= {row[1] for row in table(f"{BIN}/neutracer", "jobs")} - {"-"}
        for name in SETS:
            objects = render(name)
            assert set(settings(objects, program)) <= keys, set(settings(objects, program)) - keys
            kind = "DaemonSet" if program == "agent" else "StatefulSet"
            for variable in container(find(objects, kind, program), program)["env"]:
                assert variable["name"] in variables | {"POD_NAME"}, variable


@test
def programs_take_their_settings():
    """A mistake comes last; when it is what they name, they have taken all before."""
    wrong = {"agent": "NT_MEMORY_MAX", "aggregator": "NT_MAX_NODES"}
    for name in SETS:
        objects = render(name)
        for program, variable in wrong.items():
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(find(objects, "ConfigMap", program)["data"][f"{program}.yaml"])
                file.flush()
                done = subprocess.run([f"{BIN}/neutracer-{program}", "--config", file.name], env={variable: "0"},
                                      timeout=60, capture_output=True, text=True)
            holds(f"{variable}: '0' is not", done.stderr)
        for one in workloads(objects):
            for c in pod_of(one)[1]["containers"]:
                if c["name"] == "topics":
                    words = c["args"][c["args"].index("topics"):]
                    done = subprocess.run([f"{BIN}/neutracer", *words, "--replication=99"], capture_output=True, text=True)
                    holds("--replication: '99' is not", done.stderr)


@test
def everything_is_in_the_release_s_namespace_and_has_its_labels():
    for name in SETS:
        for one in render(name, namespace="elsewhere", release="r2"):
            if one["kind"] not in GLOBAL:
                same(one["metadata"]["namespace"], "elsewhere")
            same(one["metadata"]["labels"]["app.kubernetes.io/instance"], "r2")
            same(one["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm")


@test
def names_and_labels_fit_however_long_the_release_s_is():
    for one in [one for name in ("own-kafka", "default", "gpu-time") for one in render(name, release="a" * 53)]:
        assert len(one["metadata"]["name"]) <= 63 or one["kind"] in GLOBAL
        for value in one["metadata"]["labels"].values():
            assert len(value) <= 63, value


@test
def two_releases_share_no_object():
    def ids(**where):
        return {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
                for one in render("gpu-time", **where)}
    same(ids() & ids(release="other"), set())
    same(ids() & ids(namespace="there"), set())


def labels_in(one):
    """Each value of each map of labels below an object."""
    if isinstance(one, list):
        return [value for part in one for value in labels_in(part)]
    if not isinstance(one, dict):
        return []
    own = [value for key in ("labels", "matchLabels") for value in (one.get(key) or {}).values()]
    return own + [value for part in one.values() for value in labels_in(part)]


@test
def labels_are_texts_whatever_the_release_is_called():
    for release in ("123", "no", "on"):
        for name in SETS:
            found = labels_in(render(name, release=release))
            assert found and all(isinstance(value, str) for value in found), f"{release}, {name}: {found}"


@test
def lint_is_content():
    done = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True)
    same(done.returncode, 0)
