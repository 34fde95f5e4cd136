# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the chart by what `helm template` renders: chart.py HELM BIN. Prints TAP.

Whether a real API server takes the objects, and what runs then, is tests/cluster's business.
"""
import base64
import functools
import pathlib
import subprocess
import sys
import tempfile

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


# ---- rendering -------------------------------------------------------------------------------

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


# ---- what holds for every set of values ------------------------------------------------------

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
    for program in ("agent", "aggregator"):
        table = subprocess.run([f"{BIN}/neutracer-{program}", "--print-options"], check=True,
                               capture_output=True, text=True).stdout
        rows = [line.split("\t") for line in table.splitlines()]
        keys, variables = {row[2] for row in rows}, {row[1] for row in rows}
        # Of the command, which is at hand in the aggregator's pod.
        variables |= {"NT_SERVER", "NT_TOKEN_FILE", "NT_CA_FILE"}
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


# ---- one set after the other -----------------------------------------------------------------

@test
def by_default_there_is_a_kafka_for_evaluation_and_its_topics_are_made_beside_it():
    objects = render()
    same(kinds(objects), ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "NetworkPolicy", "Pod",
                          "Secret", "Service", "ServiceAccount", "StatefulSet"])
    url = "kafka://neutracer-kafka.here.svc:9092/neutracer"
    for program in ("agent", "aggregator"):
        same(settings(objects, program)["bus"], url)
    same(settings(objects, "agent")["pod-resources"], "")
    kafka = find(objects, "StatefulSet", "kafka")
    env = {v["name"]: v["value"] for v in container(kafka, "kafka")["env"]}
    same(env["KAFKA_ADVERTISED_LISTENERS"], "PLAINTEXT://neutracer-kafka.here.svc:9092")
    same(env["KAFKA_AUTO_CREATE_TOPICS_ENABLE"], "false")
    holds(f"--bus={url}", container(kafka, "topics")["args"])


@test
def images_are_the_project_s_version_where_nothing_else_is_said():
    version = next(line.split('"')[1] for line in open("common/base/version.h") if "NT_VERSION" in line and '"' in line)
    for one in workloads(render()):
        for c in pod_of(one)[1]["containers"]:
            same(c["imagePullPolicy"], "IfNotPresent")
            same(c["image"], "apache/kafka:3.9.1" if c["name"] == "kafka" else f"neutracer:{version}")
    digest = "sha256:" + "0" * 64
    one = find(render("default", f"image.digest={digest}"), "DaemonSet")
    same(container(one, "agent")["image"], f"neutracer@{digest}")


@test
def agents_run_everywhere_or_on_nodes_with_gpus_alone():
    _, spec = pod_of(find(render(), "DaemonSet"))
    same(spec["tolerations"], [{"operator": "Exists"}])
    assert "affinity" not in spec and "nodeSelector" not in spec
    _, spec = pod_of(find(render("gpu-nodes"), "DaemonSet"))
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    same(terms, [{"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]}])
    same(spec["priorityClassName"], "system-node-critical")


@test
def nvidia_s_library_comes_by_a_runtime_class_or_from_a_driver_s_root():
    variables = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}
    _, spec = pod_of(find(render(), "DaemonSet"))
    assert "runtimeClassName" not in spec
    assert not variables.keys() & {e["name"] for e in spec["containers"][0]["env"]}
    _, spec = pod_of(find(render("default", "agent.nvidia.runtimeClassName=nvidia"), "DaemonSet"))
    same(spec["runtimeClassName"], "nvidia")
    same({e["name"]: e.get("value") for e in spec["containers"][0]["env"] if e["name"] in variables}, variables)
    objects = render("default", "agent.nvidia.driverRoot=/run/nvidia/driver")
    _, spec = pod_of(find(objects, "DaemonSet"))
    same([v["hostPath"] for v in spec["volumes"] if v["name"] == "nvidia-driver"],
         [{"path": "/run/nvidia/driver", "type": "Directory"}])
    mount = [m for m in spec["containers"][0]["volumeMounts"] if m["name"] == "nvidia-driver"]
    same(mount, [{"name": "nvidia-driver", "mountPath": "/run/neutracer/driver", "readOnly": True}])
    same(settings(objects, "agent")["nvml"], "/run/neutracer/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")


@test
def an_existing_kafka_is_reached_by_tls_and_each_program_s_own_user():
    objects = render("own-kafka")
    assert not [one for one in objects if component(one) == "kafka"]
    for program, user, secret, key in (("agent", "neutracer-agent", "kafka-agent", "password"),
                                       ("aggregator", "neutracer-aggregator", "kafka-aggregator", "secret")):
        options = settings(objects, program)
        same({key: value for key, value in options.items() if key.startswith("bus")}, {
            "bus": "kafka://kafka-0.kafka.svc:9093,kafka-1.kafka.svc:9093/team-a",
            "bus-ca-file": "/run/neutracer/bus/ca.crt",
            "bus-cert-file": "/run/neutracer/bus/tls.crt",
            "bus-key-file": "/run/neutracer/bus/tls.key",
            "bus-user": user,
            "bus-password-file": "/run/neutracer/bus/password",
            "bus-sasl-mechanism": "SCRAM-SHA-256"})
        one = find(objects, "DaemonSet" if program == "agent" else "StatefulSet", program)
        volume = next(v for v in pod_of(one)[1]["volumes"] if v["name"] == "bus")
        tls, password = volume["projected"]["sources"]
        same([item["path"] for item in tls["secret"]["items"]], ["ca.crt", "tls.crt", "tls.key"])
        same(password["secret"], {"name": secret, "items": [{"key": key, "path": "password"}]})
    job = find(objects, "Job")
    args = container(job, "topics")["args"]
    same(args[:2], ["topics", "create"])
    holds("--bus-user=neutracer-admin", args)
    holds("--bus-ca-file=/run/neutracer/bus/ca.crt", args)
    # Waiting for all to be ready must not wait for what runs after that.
    assert "annotations" not in job["metadata"]


@test
def public_authorities_need_no_secret():
    sets = ("kafka.brokers={b:9093}", "kafka.tls.enabled=true")
    objects = render("default", *sets)
    same(settings(objects, "agent")["bus-ca-file"], "/etc/ssl/certs/ca-certificates.crt")
    assert "bus" not in [v["name"] for v in pod_of(find(objects, "DaemonSet"))[1]["volumes"]]


@test
def another_image_or_other_settings_make_another_job():
    names = {find(render("own-kafka", *sets), "Job")["metadata"]["name"]
             for sets in ((), ("image.tag=v2",), ("kafka.topics.partitions=24",), ("aggregator.replicas=2",))}
    same(len(names), 3)


@test
def aggregators_keep_their_stores_on_claims_where_they_are_told_to():
    one = find(render("claim"), "StatefulSet", "aggregator")
    claim = one["spec"]["volumeClaimTemplates"][0]
    same(claim["spec"], {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                         "resources": {"requests": {"storage": "5Gi"}}})
    same(one["spec"]["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Retain", "whenScaled": "Delete"})
    assert "data" not in [v["name"] for v in pod_of(one)[1]["volumes"]]
    same(find(render("claim"), "PodDisruptionBudget")["spec"]["maxUnavailable"], 1)
    one = find(render(), "StatefulSet", "aggregator")
    assert "volumeClaimTemplates" not in one["spec"] and "persistentVolumeClaimRetentionPolicy" not in one["spec"]
    assert "PodDisruptionBudget" not in kinds(render())


@test
def what_can_be_left_out_is():
    objects = render("all-off")
    same(kinds(objects), ["ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet", "Pod", "Service",
                          "ServiceAccount", "StatefulSet"])
    same([settings(objects, "agent")[key] for key in ("shelter", "pod-resources")], ["", ""])
    _, spec = pod_of(find(objects, "DaemonSet"))
    assert "tolerations" not in spec and "seccompProfile" not in spec["securityContext"]
    assert not {"appArmorProfile", "seLinuxOptions"} & set(spec["containers"][0]["securityContext"])


@test
def what_can_be_switched_on_is():
    objects = render("all-on")
    same(settings(objects, "agent")["window-min"], "250ms")
    same(settings(objects, "agent")["budget"], 3)
    same(settings(objects, "agent")["shelter-max-bytes"], "1024M")
    options = settings(objects, "aggregator")
    same([options[key] for key in ("gpu-hour-price", "currency", "max-ranks")], [2.5, "EUR", 100000])
    same(options["webhook-url-file"], "/run/neutracer/webhook/url")
    same(options["webhook-secret-file"], "/run/neutracer/webhook/secret")
    same(options["tls-cert-file"], "/run/neutracer/tls/tls.crt")
    c = container(find(objects, "StatefulSet", "aggregator"), "aggregator")
    same(c["livenessProbe"]["httpGet"]["scheme"], "HTTPS")
    env = {v["name"]: v.get("value") for v in c["env"]}
    same(env["NT_SERVER"], "https://neutracer-aggregator.here.svc:443")
    same(env["NT_ADVERTISE"], "https://$(POD_NAME).neutracer-aggregator-pods.here.svc:9480")
    for one in workloads(objects):
        same(pod_of(one)[1]["imagePullSecrets"], [{"name": "registry"}])
    own = peers_of(objects, "aggregator")
    assert "namespaceSelector" in own.pop(0)
    same(components(own), ["test", "aggregator", "agent"])
    same(peers_of(objects, "agent"), peers_of(objects, "aggregator")[:1])


def peers_of(objects, program):
    """Whom the program's NetworkPolicy admits. A rule without peers would be one for everybody."""
    (policy,) = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy" and component(one) == program]
    same(policy["policyTypes"], ["Ingress"])
    for rule in policy["ingress"]:
        assert rule["from"], rule
    return [peer for rule in policy["ingress"] for peer in rule["from"]]


def components(peers):
    for peer in peers:
        same(list(peer), ["podSelector"])
        same(peer["podSelector"]["matchLabels"]["app.kubernetes.io/instance"], "neutracer")
    return [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in peers]


@test
def nobody_but_the_release_s_own_pods_is_admitted_unless_named():
    for name in ("default", "own-kafka", "claim", "gpu-nodes"):
        objects = render(name)
        same(components(peers_of(objects, "aggregator")), ["test", "aggregator"])
        same(peers_of(objects, "agent"), [])
    same([one for one in render("all-off") if one["kind"] == "NetworkPolicy"], [])


@test
def agents_are_given_the_keys_of_their_nodes_where_signatures_count():
    for objects in (render(), render("default", "signatures.mode=off")):
        assert "signatures" not in settings(objects, "aggregator")
        assert "enrol-url" not in settings(objects, "agent")
    objects = render("default", "signatures.mode=accept")
    options = settings(objects, "aggregator")
    same(options["signatures"], "accept")
    same(options["enrol-account"], "here/neutracer-agent")
    same(settings(objects, "agent")["enrol-url"], "http://neutracer-aggregator.here.svc:9480")
    assert "enrol-ca-file" not in settings(objects, "agent")
    same(components(peers_of(objects, "aggregator")), ["test", "aggregator", "agent"])
    spec = pod_of(find(objects, "DaemonSet", "agent"))[1]
    (volume,) = [v for v in spec["volumes"] if v["name"] == "enrolment"]
    same(volume["projected"]["sources"],
         [{"serviceAccountToken": {"audience": "neutracer", "expirationSeconds": 3600, "path": "token"}}])
    (mount,) = [m for m in container(find(objects, "DaemonSet", "agent"), "agent")["volumeMounts"] if m["name"] == "enrolment"]
    same(settings(objects, "agent")["enrol-token-file"], mount["mountPath"] + "/token")
    same(pod_of(find(objects, "StatefulSet", "aggregator"))[1]["automountServiceAccountToken"], True)
    secrets = {base64.b64decode(find(objects_of(helm("--set", "signatures.mode=require")), "Secret", "node-secret")["data"]["node-secret"])
               for _ in range(2)}
    same([len(bytes.fromhex(secret.decode())) for secret in secrets], [32, 32])
    # With TLS, agents get the certificate and never its key.
    objects = render("all-on")
    same(settings(objects, "agent")["enrol-url"], "https://neutracer-aggregator.here.svc:443")
    same(settings(objects, "agent")["enrol-ca-file"], "/run/neutracer/enrolment/ca.crt")
    spec = pod_of(find(objects, "DaemonSet", "agent"))[1]
    (volume,) = [v for v in spec["volumes"] if v["name"] == "enrolment"]
    same(volume["projected"]["sources"][1], {"secret": {"name": "api-tls", "items": [{"key": "tls.crt", "path": "ca.crt"}]}})
    spec = pod_of(find(objects, "StatefulSet", "aggregator"))[1]
    (volume,) = [v for v in spec["volumes"] if v["name"] == "node-secret"]
    same((volume["secret"]["secretName"], volume["secret"]["items"]), ("my-secret", [{"key": "secrets", "path": "secret"}]))


@test
def monitors_and_rules_come_where_the_cluster_knows_them():
    names = {"PodMonitor", "PrometheusRule", "ServiceMonitor"}
    same(names & set(kinds(render())), set())
    done = helm("--api-versions", "monitoring.coreos.com/v1")
    same(names & set(kinds(objects_of(done))), names)
    same(names & set(kinds(render("all-on"))), names)
    endpoint = find(render("all-on"), "ServiceMonitor")["spec"]["endpoints"][0]
    same(endpoint["authorization"]["credentials"], {"name": "my-token", "key": "read"})
    endpoint = find(render("all-on", "aggregator.options.metrics-open=true"), "ServiceMonitor")["spec"]["endpoints"][0]
    assert "authorization" not in endpoint


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


@test
def the_library_comes_from_the_release_s_image_by_a_restricted_container():
    def patch(*sets):
        (mutation,) = find(render("gpu-time", *sets), "MutatingAdmissionPolicy")["spec"]["mutations"]
        same(mutation["patchType"], "JSONPatch")
        return mutation["jsonPatch"]["expression"]
    digest = "sha256:" + "0" * 64
    holds(f'image: "registry.example/nt@{digest}",', patch("image.repository=registry.example/nt", f"image.digest={digest}"))
    # A registry that is away keeps no pod from starting.
    for pull, wanted in (("Always", "IfNotPresent"), ("IfNotPresent", "IfNotPresent"), ("Never", "Never")):
        holds(f'imagePullPolicy: "{wanted}",', patch(f"image.pullPolicy={pull}"))
    text = patch()
    for words in ("runAsNonRoot: true", "runAsUser: 65532", "allowPrivilegeEscalation: false", "privileged: false",
                  "readOnlyRootFilesystem: true", 'capabilities{drop: ["ALL"]}', 'seccompProfile{type: "RuntimeDefault"}',
                  'requests: {"cpu":"1","memory":"64Mi"}, limits: {"cpu":"1","memory":"64Mi"}', "|| :",
                  'env{name: "CUDA_INJECTION64_PATH", value: "/run/neutracer/gpu-time/libneutracer-cupti.so"}',
                  'mountPath: "/run/neutracer/gpu-time", readOnly: true'):
        holds(words, text)
    # Requests are limits: a pod whose class is Guaranteed keeps it.
    text = find(render("default", "gpuTime.enabled=true"), "MutatingAdmissionPolicy")["spec"]["mutations"][0]["jsonPatch"]["expression"]
    holds('requests: {"cpu":"100m","memory":"32Mi"}, limits: {"cpu":"100m","memory":"32Mi"}', text)
    # What is missing is nothing, and not null.
    holds("requests: {}, limits: {}", patch("gpuTime.resources=null"))


@test
def the_policy_is_of_the_newest_version_that_the_cluster_has():
    for versions, wanted in ((("v1", "v1beta1"), "v1"), (("v1alpha1", "v1beta1"), "v1beta1"), (("v1alpha1",), "v1alpha1")):
        objects = render("gpu-time", policies=versions)
        same([find(objects, kind)["apiVersion"] for kind in POLICIES], [f"admissionregistration.k8s.io/{wanted}"] * 2)
    # Validating policies have the same group.
    said = refused("--set", "gpuTime.enabled=true", "--api-versions", "admissionregistration.k8s.io/v1", policies=())
    holds("gpuTime.enabled needs the kind MutatingAdmissionPolicy, which this cluster does not serve", said)
    holds("set CUDA_INJECTION64_PATH in the pods by hand: docs/kubernetes.md, GPU time", said)


def rights(objects):
    """By who has them: "resource: verbs"."""
    roles = {one["metadata"]["name"]: one["rules"] for one in objects if one["kind"] in ("ClusterRole", "Role")}
    bindings = [one for one in objects if one["kind"] in ("ClusterRoleBinding", "RoleBinding")]
    same(sorted(one["roleRef"]["name"] for one in bindings), sorted(roles))
    found = {}
    for binding in bindings:
        (subject,) = binding["subjects"]
        same((subject["kind"], subject["namespace"]), ("ServiceAccount", "here"))
        for rule in roles[binding["roleRef"]["name"]]:
            same(rule["apiGroups"], ["authentication.k8s.io" if rule["resources"] == ["tokenreviews"] else ""])
            found.setdefault(subject["name"], []).append(f"{rule['resources']}: {rule['verbs']}")
    return found


@test
def who_may_do_what_is_as_little_as_it_takes():
    agent = {"neutracer-agent": ["['pods']: ['list', 'watch']"]}
    events = ["['events']: ['create']"]
    condition = ["['nodes']: ['get']", "['nodes/status']: ['patch']"]
    for name in SETS:
        told = {"all-on": events + condition + ["['tokenreviews']: ['create']"], "all-off": None}.get(name, events)
        same(rights(render(name)), agent | ({"neutracer-aggregator": told} if told else {}))


@test
def a_token_is_made_unless_there_is_one():
    tokens = {base64.b64decode(find(objects_of(helm()), "Secret")["data"]["token"]) for _ in range(2)}
    same([len(token) for token in tokens], [48, 48])
    assert "Secret" not in kinds(render("all-on"))


@test
def new_settings_bring_new_pods_and_nothing_else_does():
    def sums(*sets):
        objects = render("default", *sets)
        return [pod_of(find(objects, kind, end))[0]["annotations"]["checksum/config"]
                for kind, end in (("DaemonSet", "agent"), ("StatefulSet", "aggregator"))]
    before = sums()
    same(sums("aggregator.service.port=80"), before)
    same([a == b for a, b in zip(sums("agent.options.window-min=1s"), before)], [False, True])
    same([a == b for a, b in zip(sums("aggregator.options.currency=EUR"), before)], [True, False])


@test
def an_older_kubernetes_is_told_of_apparmor_as_it_knows_it():
    new, old = find(render(), "DaemonSet"), find(render(kube="1.29.0"), "DaemonSet")
    annotation = "container.apparmor.security.beta.kubernetes.io/agent"
    assert annotation not in pod_of(new)[0]["annotations"]
    same(container(new, "agent")["securityContext"]["appArmorProfile"], {"type": "Unconfined"})
    same(pod_of(old)[0]["annotations"][annotation], "unconfined")
    assert "appArmorProfile" not in container(old, "agent")["securityContext"]
    holds("incompatible with Kubernetes", refused(kube="1.24.0"))


# ---- what is refused -------------------------------------------------------------------------

REFUSED = (
    ("typo=1", "additional properties 'typo' not allowed"),
    ("agent.options.window-mim=1s", "at '/agent/options': additional properties 'window-mim' not allowed"),
    ("agent.options.bus=x", "at '/agent/options': additional properties 'bus' not allowed"),
    ("agent.options.window-min=soon", "at '/agent/options/window-min': 'soon' does not match"),
    ("agent.options.budget=500", "at '/agent/options/budget': maximum: got 500, want 100"),
    ("agent.options.attach=magic", "value must be one of 'auto', 'session', 'multi', 'perf'"),
    ("agent.shelter.type=ram", "value must be one of 'emptyDir', 'hostPath', 'none'"),
    ("agent.shelter.hostPath=here", "at '/agent/shelter/hostPath': 'here' does not match"),
    ("agent.privileged=true", "additional properties 'privileged' not allowed"),
    ("aggregator.replicas=many", "at '/aggregator/replicas': got string, want integer"),
    ("aggregator.options.metrics-open=maybe", "got string, want boolean"),
    ("aggregator.options.size-floor=2", "maximum: got 2, want 1"),
    ("aggregator.service.port=70000", "maximum: got 70,000, want 65,535"),
    ("aggregator.persistence.whenDeleted=Keep", "value must be one of 'Delete', 'Retain'"),
    ("aggregator.persistence.size=big", "at '/aggregator/persistence/size': 'big' does not match"),
    ("image.pullPolicy=Sometimes", "value must be one of 'IfNotPresent', 'Always', 'Never'"),
    ("image.digest=1234", "at '/image/digest'"),
    ("kafka.brokers={kafka}", "at '/kafka/brokers/0': 'kafka' does not match"),
    ("kafka.brokers=kafka:9092", "at '/kafka/brokers': got string, want array"),
    ("kafka.topics.partitions=0", "minimum: got 0, want 1"),
    ("kafka.sasl.mechanism=GSSAPI", "value must be one of 'SCRAM-SHA-512', 'SCRAM-SHA-256', 'PLAIN'"),
    ("kafka.sasl.user=u", "kafka.sasl requires your own brokers: set kafka.brokers"),
    ("kafka.tls.enabled=true", "kafka.tls requires your own brokers: set kafka.brokers"),
    ("kafka.brokers={b:1},kafka.sasl.user=u", "kafka.sasl.user needs kafka.sasl.existingSecret"),
    ("kafka.brokers={b:1},kafka.sasl.agent.user=u", "kafka.sasl.user needs kafka.sasl.existingSecret"),
    ("kafka.brokers={b:1},kafka.sasl.user=u,kafka.sasl.existingSecret=s,kafka.sasl.mechanism=PLAIN",
     "would send the password unencrypted: set kafka.tls.enabled"),
    ("kafka.brokers={b:1},kafka.tls.enabled=true,kafka.tls.existingSecret=s,kafka.tls.certKey=c",
     "kafka.tls.certKey needs kafka.tls.keyKey"),
    ("kafka.brokers={b:1},kafka.tls.enabled=true,kafka.tls.certKey=c,kafka.tls.keyKey=k",
     "kafka.tls.certKey is a key of kafka.tls.existingSecret, which is empty"),
    ("agent.gpuNodes.only=true,agent.affinity.podAffinity.x=y",
     "agent.gpuNodes.only and agent.affinity are mutually exclusive"),
    ("agent.nvidia.runtimeClassName=nvidia,agent.nvidia.driverRoot=/",
     "agent.nvidia.runtimeClassName and agent.nvidia.driverRoot are mutually exclusive"),
    ("agent.nvidia.driverRoot=/,agent.options.nvml=none", "agent.options.nvml is set by agent.nvidia.driverRoot"),
    ("agent.nvidia.driverRoot=driver", "at '/agent/nvidia/driverRoot': 'driver' does not match"),
    ("agent.nvidia.library=/usr/lib/x.so", "at '/agent/nvidia/library': '/usr/lib/x.so' does not match"),
    ("gpuTime.enabled=yes", "at '/gpuTime/enabled': got string, want boolean"),
    ("gpuTime.label=", "at '/gpuTime/label': '' does not match"),
    ("gpuTime.label=a b", "at '/gpuTime/label': 'a b' does not match"),
    ("gpuTime.library=/opt", "at '/gpuTime': additional properties 'library' not allowed"),
    ("gpuTime.resources.memory=much", "at '/gpuTime/resources/memory': 'much' does not match"),
    ("gpuTime.namespaceSelector.team=ml", "at '/gpuTime/namespaceSelector': additional properties 'team' not allowed"),
    ("gpuTime.namespaceSelector.matchExpressions[0].key=a,gpuTime.namespaceSelector.matchExpressions[0].operator=Is",
     "value must be one of 'In', 'NotIn', 'Exists', 'DoesNotExist'"),
    ("signatures.mode=maybe", "value must be one of 'off', 'accept', 'require'"),
    ("monitoring.monitors=perhaps", "at '/monitoring/monitors': value must be one of"),
)


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
def what_is_wrong_is_refused_with_its_name():
    for values, words in REFUSED:
        said = refused("--set", values)
        assert words in said, f"{values}: '{words}' is not in: {said}"


@test
def lint_is_content():
    done = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True)
    same(done.returncode, 0)


# ----------------------------------------------------------------------------------------------

def main():
    print(f"1..{len(tests)}")
    bad = 0
    for number, one in enumerate(tests, 1):
        try:
            one()
            print(f"ok {number} - {one.__name__}")
        except (AssertionError, KeyError, StopIteration) as error:
            bad += 1
            print(f"not ok {number} - {one.__name__}\n# {type(error).__name__}: {error}")
    sys.exit(1 if bad else 0)


main()
