"""The simulated node of control-plane mode; kwok keeps it Ready."""

from typing import Any

from cluster.plan import Plan
from cluster.run.kube import Kube


def manifest(plan: Plan) -> dict[str, Any]:
    """A node with resources for more than a thousand pods."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "2000", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": plan.node_name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": plan.node_name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": resources, "capacity": resources},
    }


def ensure_node(kube: Kube, plan: Plan) -> bool:
    """Create the node if it does not exist; returns whether it exists."""
    if kube.request("GET", f"/api/v1/nodes/{plan.node_name}"):
        return True
    return kube.request("POST", "/api/v1/nodes", manifest(plan)) is not None
