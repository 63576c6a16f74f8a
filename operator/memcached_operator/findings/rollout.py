"""The progress of a rollout, as each type of workload reports it."""

from dataclasses import dataclass
from datetime import timedelta

from memcached_operator.kube.resource import Object, nested_map

MAX_UNAVAILABLE_PERCENT = 25
"""Percentage of pods that may be unavailable: the default maxUnavailable of a Deployment."""

PROGRESS_DEADLINE = timedelta(seconds=600)
"""Time without progress after which a rollout counts as stalled: the default progressDeadlineSeconds of a Deployment.
"""


@dataclass(frozen=True)
class Rollout:
    """Pod counts and state of a workload.

    `workload`: its kind. `current`: the counts refer to the latest spec; otherwise, `updated` is 0. `complete`: all
    pods have the latest template and are available, and no other pods are left. `paused`: pods are not replaced.
    `requeue_after`: seconds until the deadline is exceeded without an event; None if an event reports that. `serving`:
    the number of pods that serve clients, if pods serve before they are ready; None: those that are ready. `doing`:
    what happens to pods, such as `a-2 is being resized`.
    """

    workload: str
    exists: bool = False
    size: int = 0
    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available_pods: int = 0
    current: bool = False
    complete: bool = False
    paused: bool = False
    deadline_exceeded: bool = False
    requeue_after: float | None = None
    serving: int | None = None
    doing: tuple[str, ...] = ()

    @property
    def usable(self) -> int:
        """The number of pods that serve clients."""
        return self.ready if self.serving is None else self.serving

    @property
    def available(self) -> bool:
        """True if enough pods serve: at most MAX_UNAVAILABLE_PERCENT of them, rounded down, do not.

        Counted for every type of workload: the condition of a Deployment depends on its maxUnavailable, and can be True
        while no pod is ready.
        """
        return self.exists and self.usable >= self.size - self.size * MAX_UNAVAILABLE_PERCENT // 100


def counted(workload: str, live: Object | None) -> Rollout:
    """The pod counts of a live workload, and whether they are current; its other state is not set.

    `workload`: its kind. `live`: None if it does not exist.
    """
    if live is None:
        return Rollout(workload)
    status = nested_map(live, "status")
    current = status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
    return Rollout(
        workload,
        exists=True,
        size=live["spec"].get("replicas", 1),
        replicas=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0) if current else 0,
        ready=status.get("readyReplicas", 0),
        available_pods=status.get("availableReplicas", 0),
        paused=bool(live["spec"].get("paused")),
        current=current,
    )
