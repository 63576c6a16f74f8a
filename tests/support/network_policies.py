"""Evaluates NetworkPolicies as Kubernetes defines them, because no network plug-in here enforces them.

Only ingress, and only what the operator writes: numbers as ports, and the three types of peers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Labels = Mapping[str, str]
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Client:
    """The source of a connection: a pod, or an address outside the cluster if `labels` is None."""

    address: str
    namespace: str = ""
    labels: Labels | None = None
    namespace_labels: Labels = field(default_factory=dict[str, str])


def admits(policy: Object, pod: Labels, client: Client, port: int, protocol: str = "TCP") -> bool:
    """Whether a client may connect to a port of a pod in the policy's namespace, if this is the only policy."""
    spec = policy["spec"]
    if not _selects(spec["podSelector"], pod) or "Ingress" not in spec["policyTypes"]:
        return True  # a pod that no policy selects is not isolated
    namespace = policy["metadata"]["namespace"]
    rules: Iterable[Object] = spec.get("ingress") or ()
    return any(_is_port(rule, port, protocol) and _is_source(rule, client, namespace) for rule in rules)


def _is_port(rule: Object, port: int, protocol: str) -> bool:
    """Whether a rule applies to a port. Without a list of ports, to all."""
    ports: Iterable[Object] = rule.get("ports") or ()
    found = [(each.get("port", port), each.get("protocol", "TCP")) for each in ports]
    return not found or (port, protocol) in found


def _is_source(rule: Object, client: Client, namespace: str) -> bool:
    """Whether a rule names a client. Without a list of peers, or with an empty one, all clients."""
    peers: Iterable[Object] = rule.get("from") or ()
    return not peers or any(_is_peer(peer, client, namespace) for peer in peers)


def _is_peer(peer: Object, client: Client, namespace: str) -> bool:
    if "ipBlock" in peer:
        block, address = peer["ipBlock"], ip_address(client.address)
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(part) for part in block.get("except") or ()
        )
    if client.labels is None or not _selects(peer.get("podSelector", {}), client.labels):
        return False
    if "namespaceSelector" in peer:
        return _selects(peer["namespaceSelector"], client.namespace_labels)
    return client.namespace == namespace


def _selects(selector: Object, labels: Labels) -> bool:
    """Whether a label selector selects an object. An empty one selects all."""
    exact: Labels = selector.get("matchLabels") or {}
    expressions: Iterable[Object] = selector.get("matchExpressions") or ()
    return exact.items() <= labels.items() and all(_holds(each, labels) for each in expressions)


def _holds(requirement: Object, labels: Labels) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    return {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[requirement["operator"]]
