"""The node that does not exist: kwok keeps it Ready in control-plane mode."""

from typing import Any

from cluster.kube import Kube
from cluster.plan import Plan


def manifest(plan: Plan) -> dict[str, Any]:
    """A node with room for a thousand pods."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": plan.node_name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": plan.node_name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": room, "capacity": room},
    }


def fake_node(kube: Kube, plan: Plan) -> bool:
    """Make the node unless it is there; tell whether it now is."""
    if kube.request("GET", f"/api/v1/nodes/{plan.node_name}"):
        return True
    return kube.request("POST", "/api/v1/nodes", manifest(plan)) is not None
