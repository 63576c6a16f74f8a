"""The NetworkPolicy of a Memcached."""

from typing import Any

import msgspec

from memcached_api.memcached.placing import NetworkPolicy
from memcached_operator.kube.resource import NETWORK_POLICIES, Object
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.workloads import children


def network_policy(cr: Object, policy: NetworkPolicy, port: int) -> Object:
    """Build the policy: only these clients may connect, and only to memcached's port.

    The kubelet's probes are admitted by every network plug-in: a policy never applies to traffic from the pod's node.
    """
    content = {
        "podSelector": {"matchLabels": children.selector(cr, APP_NAME)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": _peers(policy), "ports": [{"port": port, "protocol": "TCP"}]}],
    }
    return children.child(NETWORK_POLICIES, cr, APP_NAME, COMPONENT, spec=content)


def _peers(policy: NetworkPolicy) -> list[dict[str, Any]]:
    """The clients; without a list, all pods in this namespace."""
    return [{"podSelector": {}}] if policy.from_ is None else msgspec.to_builtins(policy.from_)
