"""How far a Deployment is: its own status read as `kubectl rollout status` reads it."""

from dataclasses import dataclass

from memcached_operator.kube.resource import Object, entries, mapping

MAX_UNAVAILABLE = 4
"""One pod of so many may be missing while the rest counts as available: a Deployment's default, 25 % rounded down."""


@dataclass(frozen=True)
class Rollout:
    """Counts of pods, and what the Deployment controller says of them."""

    exists: bool = False
    size: int = 0
    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available_pods: int = 0
    current: bool = False
    available: bool = False
    deadline_exceeded: bool = False
    replica_failure: str = ""

    @property
    def complete(self) -> bool:
        """True where every pod is of the current template and available, and no other pod is left."""
        return self.current and self.size == self.replicas == self.updated == self.available_pods


def rollout_of(deployment: Object | None) -> Rollout:
    """Read a Deployment; one that does not exist has no pods and nothing current."""
    if deployment is None:
        return Rollout()
    status = mapping(deployment, "status")
    conditions = {condition["type"]: condition for condition in entries(deployment, "status", "conditions")}
    failure = mapping(conditions, "ReplicaFailure")
    size, available_pods = deployment["spec"].get("replicas", 1), status.get("availableReplicas", 0)
    current = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    available = mapping(conditions, "Available").get("status") == "True"
    return Rollout(
        exists=True,
        size=size,
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available_pods=available_pods,
        current=current,
        # Until its controller has seen a new size, the condition is about the old one: say now what it will say.
        available=available if current else available_pods >= size - size // MAX_UNAVAILABLE,
        deadline_exceeded=mapping(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        replica_failure=failure.get("message", "") if failure.get("status") == "True" else "",
    )
