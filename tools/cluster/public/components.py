"""For other tools: add components to a running cluster, remove them, and send requests to its API server."""

from cluster.run.components import Component
from cluster.run.files import read_components, write
from cluster.run.kube import Kube, wait
from cluster.run.on_demand import apply, end, ensure_running
from cluster.run.supervisor import die_with_parent

__all__ = [
    "Component",
    "Kube",
    "apply",
    "die_with_parent",
    "end",
    "ensure_running",
    "read_components",
    "wait",
    "write",
]
