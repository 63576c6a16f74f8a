"""The NetworkPolicy of an object."""

from collections.abc import Iterable
from typing import Any

import msgspec

from memcached_api.shared.monitoring import METRICS_PORT
from memcached_api.shared.pod_template import NetworkPolicy, NetworkPolicyPeer
from memcached_operator.kube.resource import NETWORK_POLICIES, Object
from memcached_operator.parts.workloads import children

ANY_POD: dict[str, Any] = {"namespaceSelector": {}}
"""All pods in all namespaces."""


def network_policy(
    cr: Object, app_name: str, component: str, ports: Iterable[int], policy: NetworkPolicy, *, metrics: bool
) -> Object:
    """Build the policy: only these clients may connect, and only to these ports and, with `metrics`, the agent's.

    The kubelet's probes are admitted by every network plug-in: a policy never applies to traffic from the pod's node.
    """
    rules = [_rule(policy.from_, {"podSelector": {}}, *ports)]
    if metrics:
        rules.append(_rule(policy.metrics_from, ANY_POD, METRICS_PORT))
    content = {
        "podSelector": {"matchLabels": children.selector(cr, app_name)},
        "policyTypes": ["Ingress"],
        "ingress": rules,
    }
    return children.child(NETWORK_POLICIES, cr, app_name, component, spec=content)


def _rule(clients: list[NetworkPolicyPeer] | None, default: dict[str, Any], *ports: int) -> dict[str, Any]:
    """The clients of ports; without a list, the default."""
    peers = [default] if clients is None else msgspec.to_builtins(clients)
    return {"from": peers, "ports": [{"port": port, "protocol": "TCP"} for port in ports]}
