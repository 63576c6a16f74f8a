"""The progress of a rollout, as each type of workload reports it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from memcached_operator.kind import PodController, Snapshot

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


def has_minimum(available_pods: int, size: int) -> bool:
    """True if at most MAX_UNAVAILABLE_PERCENT of the pods are unavailable."""
    return available_pods >= size - size * MAX_UNAVAILABLE_PERCENT // 100
