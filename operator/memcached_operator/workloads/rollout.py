"""The progress of a rollout, from the Deployment's status, as in `kubectl rollout status`."""

from dataclasses import dataclass

from memcached_operator.kube.resource import Object, nested_list, nested_map

MAX_UNAVAILABLE_PERCENT = 25
"""Percentage of pods that may be unavailable, rounded down: the default maxUnavailable of a Deployment."""


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
    """The rollout of a Deployment; empty if the Deployment does not exist (None)."""
    if deployment is None:
        return Rollout()
    status = nested_map(deployment, "status")
    conditions = {condition["type"]: condition for condition in nested_list(deployment, "status", "conditions")}
    failure = nested_map(conditions, "ReplicaFailure")
    size, available_pods = deployment["spec"].get("replicas", 1), status.get("availableReplicas", 0)
    current = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    available = nested_map(conditions, "Available").get("status") == "True"
    return Rollout(
        exists=True,
        size=size,
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available_pods=available_pods,
        current=current,
        # Until the Deployment controller observes a new size, its condition refers to the old one; compute it instead.
        available=available if current else available_pods >= size - size * MAX_UNAVAILABLE_PERCENT // 100,
        deadline_exceeded=nested_map(conditions, "Progressing").get("reason") == "ProgressDeadlineExceeded",
        replica_failure=failure.get("message", "") if failure.get("status") == "True" else "",
    )
