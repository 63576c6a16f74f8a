"""For other tools: add components to a running cluster, remove them, and send requests to its API server."""

from cluster.run.components import Component
from cluster.run.files import read_components, write, write_components
from cluster.run.kube import Kube, wait
from cluster.run.on_demand import apply, end, ensure_running, kubectl
from cluster.run.supervisor import die_with_parent

__all__ = [
    "Component",
    "Kube",
    "apply",
    "die_with_parent",
    "end",
    "ensure_running",
    "kubectl",
    "read_components",
    "wait",
    "write",
    "write_components",
]
