"""The progress of a rollout, as each type of workload reports it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memcached_operator.kind import PodController, Snapshot
from memcached_operator.kube.resource import Object, nested_map

MAX_UNAVAILABLE_PERCENT = 25
"""Percentage of pods that may be unavailable, rounded down: the default maxUnavailable of a Deployment."""


@dataclass(frozen=True)
class Rollout:
    """Pod counts and state of a workload.

    `current`: the counts refer to the latest spec. `available`: enough pods are available. `complete`: all pods have
    the latest template and are available, and no other pods are left. `requeue_after`: seconds until the deadline is
    exceeded without an event; None if an event reports that.
    """

    exists: bool = False
    size: int = 0
    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available_pods: int = 0
    current: bool = False
    available: bool = False
    complete: bool = False
    deadline_exceeded: bool = False
    replica_failure: str = ""
    requeue_after: float | None = None


class WorkloadType(PodController, Protocol):
    """What differs between Deployment and StatefulSet."""

    def rollout(self, snapshot: Snapshot, now: datetime) -> Rollout:
        """The rollout of the workload with the name of the custom resource; empty if it does not exist."""
        ...


def counted(live: Object) -> Rollout:
    """The pod counts of a live workload, and whether they are current; its other state is not set."""
    status = nested_map(live, "status")
    return Rollout(
        exists=True,
        size=live["spec"].get("replicas", 1),
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        ready=status.get("readyReplicas", 0),
        available_pods=status.get("availableReplicas", 0),
        current=status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0),
    )


def has_minimum(available_pods: int, size: int) -> bool:
    """True if at most MAX_UNAVAILABLE_PERCENT of the pods are unavailable."""
    return available_pods >= size - size * MAX_UNAVAILABLE_PERCENT // 100
