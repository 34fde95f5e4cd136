# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that are refused, and what is said of them."""
from rendering import refused, test

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
    ("agent.amd.rocmRoot=/opt/rocm,agent.options.amdsmi=none", "agent.options.amdsmi is set by agent.amd.rocmRoot"),
    ("agent.amd.rocmRoot=rocm", "at '/agent/amd/rocmRoot': 'rocm' does not match"),
    ("agent.nvidia.driverRoot=driver", "at '/agent/nvidia/driverRoot': 'driver' does not match"),
    ("agent.nvidia.library=/usr/lib/x.so", "at '/agent/nvidia/library': '/usr/lib/x.so' does not match"),
    ("gpuTime.enabled=yes", "at '/gpuTime/enabled': got string, want boolean"),
    ("gpuTime.nccl=maybe", "at '/gpuTime/nccl': got string, want boolean"),
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


@test
def what_is_wrong_is_refused_with_its_name():
    for values, words in REFUSED:
        said = refused("--set", values)
        assert words in said, f"{values}: '{words}' is not in: {said}"
