"""The progress of a rollout, from the Deployment's status, as in `kubectl rollout status`."""

from dataclasses import dataclass

from memcached_operator.kube.resource import Object, entries, mapping

MAX_UNAVAILABLE = 4
"""One of this many pods may be unavailable: the default maxUnavailable of a Deployment, 25 % rounded down."""


@dataclass(frozen=True)
class Rollout:
    """Pod counts and conditions from the status of a Deployment."""

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
        """True if all pods have the current template and are available, and no other pods are left."""
        return self.current and self.size == self.replicas == self.updated == self.available_pods


def rollout_of(deployment: Object | None) -> Rollout:
    """Read a Deployment. None, for one that does not exist, gives an empty Rollout."""
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
        # Until the Deployment controller observes a new size, its condition refers to the old one; compute it instead.
        available=available if current else available_pods >= size - size // MAX_UNAVAILABLE,
        deadline_exceeded=mapping(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        replica_failure=failure.get("message", "") if failure.get("status") == "True" else "",
    )
