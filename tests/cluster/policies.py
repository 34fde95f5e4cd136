# SPDX-License-Identifier: GPL-3.0-or-later
"""Enforces a cluster's NetworkPolicies by nftables, as its network, which is ptp's, does not.

    policies.py CLUSTER.SH     until it is ended; prints a line for each change that is in force

Our own reading of what the API's documentation says, of what the chart uses: rules for TCP and UDP, by
labels of pods and namespaces and by blocks of addresses, ports by number and by name. Who is not let
through is told so (administratively prohibited), and can tell it from a port that nobody listens on.
"""
import json
import subprocess
import sys
import time

CLUSTER = sys.argv[1]
TABLE = "neutracer-policies"


def selects(selector, labels):
    """Whether a label selector, empty for all, selects who has these labels."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions", []):
        value, values = labels.get(term["key"]), term.get("values", [])
        if {
            "In": value not in values,
            "NotIn": value in values,
            "Exists": value is None,
            "DoesNotExist": value is not None,
        }[term["operator"]]:
            return False
    return True


def named(pod, name):
    """The numbers of a pod's port that has a name."""
    return [
        port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("name") == name
    ]


def peers(rule, side, space, pods, spaces):
    """Who is meant: matches of addresses, and the pod that each is of, or None."""
    if not rule.get(side):
        return [("", None)]
    found = []
    for peer in rule[side]:
        if "ipBlock" in peer:
            excluded = "".join(f" ADDRESS != {block}" for block in peer["ipBlock"].get("except", []))
            found.append((f"ADDRESS {peer['ipBlock']['cidr']}{excluded}", None))
            continue
        for pod in pods:
            home = pod["metadata"]["namespace"]
            if "namespaceSelector" in peer:
                is_there = selects(peer["namespaceSelector"], spaces[home])
            else:
                is_there = home == space
            if is_there and selects(peer.get("podSelector", {}), pod["metadata"].get("labels", {})):
                found.append((f"ADDRESS {pod['status']['podIP']}", pod))
    return found


def matches(policy, direction, pod, pods, spaces):
    """The lines that match what a policy allows a pod in one direction."""
    side, address = ("from", "ip saddr") if direction == "Ingress" else ("to", "ip daddr")
    for rule in policy["spec"].get(direction.lower(), []):
        for block, peer in peers(rule, side, policy["metadata"]["namespace"], pods, spaces):
            who = block.replace("ADDRESS", address)
            if not rule.get("ports"):
                yield who
            for port in rule.get("ports", []):
                number, protocol = port.get("port"), port.get("protocol", "TCP").lower()
                listener = pod if direction == "Ingress" else peer
                if isinstance(number, str):
                    numbers = named(listener, number) if listener else []
                else:
                    numbers = [f"{number}-{port.get('endPort', number)}" if number else "0-65535"]
                for one in numbers:
                    yield f"{who} {protocol} dport {one}"


def ruleset(policies, pods, spaces):
    """All of it, in place of what stood. A pod that no policy selects may do everything."""
    chains, maps = [], {"Ingress": [], "Egress": []}
    for pod in pods:
        ours = [
            policy
            for policy in policies
            if policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and selects(policy["spec"]["podSelector"], pod["metadata"].get("labels", {}))
        ]
        for direction, where in maps.items():
            of_side = [policy for policy in ours if direction in policy["spec"]["policyTypes"]]
            if not of_side:
                continue
            ip = pod["status"]["podIP"]
            name = f"{direction}-{ip.replace('.', '-')}"
            where.append(f"{ip} : jump {name}")
            lines = [line for policy in of_side for line in matches(policy, direction, pod, pods, spaces)]
            lines = [f"{line} return" for line in lines] + ["reject with icmp type admin-prohibited"]
            chains.append(f"chain {name} {{\n" + "\n".join(lines) + "\n}")
    # A connection that was let in goes on. The node itself always reaches its pods: it is not forwarded.
    begin = "ct state established,related accept"
    out = f"ip saddr vmap {{ {', '.join(maps['Egress'])} }}" if maps["Egress"] else ""
    into = f"ip daddr vmap {{ {', '.join(maps['Ingress'])} }}" if maps["Ingress"] else ""
    chains.append(f"chain forward {{ type filter hook forward priority filter; {begin}\n{out}\n{into}\n}}")
    chains.append(f"chain input {{ type filter hook input priority filter; {begin}\n{out}\n}}")
    return f"table ip {TABLE}\ndelete table ip {TABLE}\ntable ip {TABLE} {{\n" + "\n".join(chains) + "\n}\n"


def there(item):
    """A pod with an address of its own."""
    status, spec = item["status"], item["spec"]
    is_alive = status["phase"] in ("Pending", "Running")
    return is_alive and status.get("podIP") and not spec.get("hostNetwork")


def main():
    """Looks twice a second."""
    old = None
    # Each word of it is told.
    subprocess.run([CLUSTER, "exec", "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0"], check=True)
    ask = [CLUSTER, "kubectl", "get", "networkpolicies,pods,namespaces", "-A", "-o", "json"]
    while True:
        asked = subprocess.run(ask, capture_output=True, check=False)
        items = json.loads(asked.stdout)["items"] if asked.returncode == 0 else []
        pods = [item for item in items if item["kind"] == "Pod" and there(item)]
        spaces = {
            item["metadata"]["name"]: item["metadata"]["labels"] for item in items if item["kind"] == "Namespace"
        }
        policies = [item for item in items if item["kind"] == "NetworkPolicy"]
        new = ruleset(policies, pods, spaces)
        if items and new != old:
            subprocess.run([CLUSTER, "exec", "nft", "-f", "-"], input=new.encode(), check=True)
            print(f"{len(policies)} policies, {len(pods)} pods", flush=True)
            old = new
        time.sleep(0.5)


main()
