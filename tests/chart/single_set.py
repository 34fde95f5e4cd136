# SPDX-License-Identifier: GPL-3.0-or-later
"""What single sets of values bring, one after the other."""
import base64
import json
import pathlib

import yaml

from rendering import (SETS, component, container, find, helm, holds, kinds, objects_of, pod_of,
                       refused, render, same, settings, test, workloads)


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
def amd_s_library_comes_from_rocm_s_directory():
    objects = render()
    _, spec = pod_of(find(objects, "DaemonSet"))
    assert not [v for v in spec["volumes"] if v["name"] == "rocm"] and "amdsmi" not in settings(objects, "agent")
    objects = render("default", "agent.amd.rocmRoot=/opt/rocm")
    _, spec = pod_of(find(objects, "DaemonSet"))
    same([v["hostPath"] for v in spec["volumes"] if v["name"] == "rocm"], [{"path": "/opt/rocm", "type": "Directory"}])
    same([m for m in spec["containers"][0]["volumeMounts"] if m["name"] == "rocm"],
         [{"name": "rocm", "mountPath": "/run/neutracer/rocm", "readOnly": True}])
    same(settings(objects, "agent")["amdsmi"], "/run/neutracer/rocm/lib/libamd_smi.so")


@test
def nccl_s_ras_needs_an_option_and_a_capability():
    objects = render()
    _, spec = pod_of(find(objects, "DaemonSet"))
    assert "SYS_ADMIN" not in spec["containers"][0]["securityContext"]["capabilities"]["add"]
    assert "nccl-ras" not in settings(objects, "agent")
    objects = render("default", "agent.ncclRas=true")
    _, spec = pod_of(find(objects, "DaemonSet"))
    same(spec["containers"][0]["securityContext"]["capabilities"]["add"].count("SYS_ADMIN"), 1)
    same(settings(objects, "agent")["nccl-ras"], True)


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
    same(options["tls-client-ca-file"], "/run/neutracer/client-ca/ca.crt")
    same(options["tls-client-auth"], "optional")
    c = container(find(objects, "StatefulSet", "aggregator"), "aggregator")
    same(c["livenessProbe"]["httpGet"]["scheme"], "HTTPS")
    env = {v["name"]: v.get("value") for v in c["env"]}
    same(env["NT_SERVER"], "https://neutracer-aggregator.here.svc:443")
    same([env["NT_CERT_FILE"], env["NT_KEY_FILE"]], ["/run/neutracer/client/tls.crt", "/run/neutracer/client/tls.key"])
    volumes = {v["name"]: v for v in pod_of(find(objects, "StatefulSet", "aggregator"))[1]["volumes"]}
    same(volumes["client-ca"]["secret"]["items"], [{"key": "root.pem", "path": "ca.crt"}])
    same(volumes["client"]["secret"]["secretName"], "own-client")
    same(find(objects, "ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"]["keySecret"],
         {"name": "own-client", "key": "tls.key"})
    same(env["NT_ADVERTISE"], "https://$(POD_NAME).neutracer-aggregator-pods.here.svc:9480")
    for one in workloads(objects):
        same(pod_of(one)[1]["imagePullSecrets"], [{"name": "registry"}])
    own = peers_of(objects, "aggregator")
    assert "namespaceSelector" in own.pop(0)
    same(components(own), ["test", "aggregator", "agent"])
    same(peers_of(objects, "agent"), peers_of(objects, "aggregator")[:1])


@test
def receivers_have_their_secrets():
    objects = render("all-on")
    same(settings(objects, "aggregator")["receivers-file"], "/etc/neutracer/receivers.yaml")
    (config,) = [one for one in objects if one["kind"] == "ConfigMap" and component(one) == "aggregator"]
    file = yaml.safe_load(config["data"]["receivers.yaml"])
    same(file["incident-url"], "https://neutracer.example/i/")
    am, team, pager, genie = file["receivers"]
    same(am["urls"], ["http://am-0:9093", "http://am-1:9093"])
    same(team["routes"], [{"severity": "critical", "job": "llm-*"}])
    same((team["url-file"], team["secret-file"]),
         ("/run/neutracer/receivers/team/url", "/run/neutracer/receivers/team/secret"))
    same((pager["title"], pager["text"]), ("{job}: {culprit}", "{summary}\n{link}"))
    same((genie["heartbeat"], genie["heartbeat-name"]), ("1m", "neutracer-eu"))
    same(("url-file" in pager, pager["secret-file"]), (False, "/run/neutracer/receivers/pager/secret"))
    _, spec = pod_of(find(objects, "StatefulSet", "aggregator"))
    (volume,) = [v for v in spec["volumes"] if v["name"] == "receivers"]
    same([(s["secret"]["name"], s["secret"]["items"]) for s in volume["projected"]["sources"]],
         [("chat", [{"key": "address", "path": "team/url"}, {"key": "sign", "path": "team/secret"}]),
          ("pd", [{"key": "key", "path": "pager/secret"}]),
          ("og", [{"key": "key", "path": "genie/secret"}])])
    assert not {"existingSecret", "urlKey"} & set(team)


@test
def nvsentinel_has_its_socket_only_on_request():
    objects = render("default", "aggregator.nvsentinel.hostPath=/var/run/nvsentinel", "aggregator.receivers[0].name=nv",
                     "aggregator.receivers[0].kind=nvsentinel", "aggregator.receivers[0].remediate=true")
    (config,) = [one for one in objects if one["kind"] == "ConfigMap" and component(one) == "aggregator"]
    same(yaml.safe_load(config["data"]["receivers.yaml"])["receivers"],
         [{"name": "nv", "kind": "nvsentinel", "remediate": True,
           "url": "unix:///run/neutracer/nvsentinel/nvsentinel.sock"}])
    one = find(objects, "StatefulSet", "aggregator")
    (volume,) = [v for v in pod_of(one)[1]["volumes"] if v["name"] == "nvsentinel"]
    same(volume["hostPath"], {"path": "/var/run/nvsentinel", "type": "Directory"})
    (mount,) = [m for m in container(one, "aggregator")["volumeMounts"] if m["name"] == "nvsentinel"]
    same(mount["mountPath"], "/run/neutracer/nvsentinel")
    assert "hostPath" not in str(find(render("default"), "StatefulSet", "aggregator"))


@test
def nvsentinel_has_one_url_however_it_is_given():
    one = "aggregator.receivers[0]."
    for sets, url in (((one + "existingSecret=nv", one + "urlKey=socket"),
                       {"url-file": "/run/neutracer/receivers/nv/url"}),
                      ((one + "url=unix:///run/nv.sock",), {"url": "unix:///run/nv.sock"}),
                      ((one + "urls={http://nv}",), {"urls": ["http://nv"]})):
        for path in ("", "/var/run/nvsentinel"):
            objects = render("default", f"aggregator.nvsentinel.hostPath={path}", one + "name=nv",
                             one + "kind=nvsentinel", *sets)
            (config,) = [o for o in objects if o["kind"] == "ConfigMap" and component(o) == "aggregator"]
            same(yaml.safe_load(config["data"]["receivers.yaml"])["receivers"],
                 [{"name": "nv", "kind": "nvsentinel", **url}])


@test
def nodes_are_changed_only_on_request():
    def of(*sets):
        objects = render("default", *sets)
        return settings(objects, "aggregator").get("kube-action"), rights(objects)["neutracer-aggregator"]

    events = ["['events']: ['create']"]
    same(of(), (None, events))
    same(of("aggregator.kubernetes.action=cordon"), ("cordon", events + ["['nodes']: ['get', 'list', 'patch']"]))
    same(of("aggregator.kubernetes.action=undo"), ("undo", events + ["['nodes']: ['get', 'list', 'patch']"]))
    same(of("aggregator.kubernetes.nodeCondition=true"),
         (None, events + ["['nodes']: ['get']", "['nodes/status']: ['patch']"]))


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
    endpoints = find(render("all-on", "aggregator.options.metrics-open=true"), "ServiceMonitor")["spec"]["endpoints"]
    same(["authorization" in one for one in endpoints], [False, True])  # the second is of all ranks of a job


@test
def each_rank_of_a_job_has_series_on_request():
    endpoints = find(render("all-on"), "ServiceMonitor")["spec"]["endpoints"]
    same([one.get("params") for one in endpoints], [None, {"ranks": ["llm-70b"]}])
    same(endpoints[1]["relabelings"], [{"targetLabel": "scrape", "replacement": "ranks-llm-70b"}])
    same({k: v for k, v in endpoints[1].items() if k not in ("params", "relabelings")}, endpoints[0])


@test
def alerts_on_jobs_come_on_request():
    def groups(*arguments):
        return [g["name"] for g in find(render("all-on", *arguments), "PrometheusRule")["spec"]["groups"]]
    same(groups(), ["neutracer-records", "neutracer-health", "neutracer-jobs"])
    same(groups("monitoring.jobAlerts=false"), ["neutracer-records", "neutracer-health"])


@test
def dashboards_are_the_files_of_the_chart():
    def dashboards(objects):
        return [one for one in objects if one["metadata"]["name"].startswith("neutracer-dashboard-")]
    same(dashboards(render()), [])
    found = dashboards(render("all-on"))
    files = sorted(pathlib.Path("deploy/helm/neutracer/monitoring/dashboards").glob("*.json"))
    same([list(one["data"]) for one in found], [[f"neutracer-{file.name}"] for file in files])
    for one, file in zip(found, files):
        same((one["kind"], one["metadata"]["labels"]["grafana_dashboard"]), ("ConfigMap", "1"))
        same(one["metadata"]["annotations"], {"grafana_folder": "GPU"})
        same(json.loads(one["data"][f"neutracer-{file.name}"]), json.loads(file.read_text()))


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
    condition = ["['nodes']: ['get', 'list', 'patch']", "['nodes/status']: ['patch']"]  # with kubernetes.action
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
