"""The state of the pod of a slot, and the next step of its update."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from memcached_operator.engine.kind import PodStep
from memcached_operator.findings.finding import Problem
from memcached_operator.world.pod import Pod

UNKNOWN: Final = 60.0
"""Seconds until a pod is considered again whose next step depends on what the API server serves."""


class SlotState(Enum):
    """The state of the pod of a slot."""

    DONE = "done"
    """It is updated and available. A step only removes its record."""
    BUSY = "busy"
    """Something happens that the next step must wait for."""
    OUTDATED = "outdated"
    """It has a step, which must wait until the other pods are available."""
    UNFINISHED = "unfinished"
    """It has a step that completes or restores it, which need not wait."""
    STUCK = "stuck"
    """It has a problem that ends the update. A step tries again what has failed, and touches no container."""


@dataclass(frozen=True)
class Slot:
    """The pod of a slot."""

    name: str
    state: SlotState
    doing: str = ""
    """What happens to it, for messages."""
    step: PodStep | None = None
    problem: Problem | None = None
    begun: bool = False
    """Its update has begun."""
    changing: bool = False
    """Its update, or an earlier one, has begun and is not completed."""
    broken: bool = False
    """It is outdated, and cannot become ready."""
    failing: bool = False
    """It is updated, and cannot become ready."""
    keeps_memcached_running: bool = False
    """Its step does not touch the first container."""
    in_flight: bool = False
    """An earlier step may still restart it."""
    ready: bool = False
    """It is available."""
    requeue_after: float | None = None
    """Seconds until it may be available, or until its earlier step is not waited for any more."""

    @property
    def moving(self) -> bool:
        """Whether its pod is being changed."""
        return self.state is SlotState.BUSY or self.in_flight

    @property
    def disturbed(self) -> bool:
        """Whether its pod is being changed, or is not ready: it counts for the limit of slots at once."""
        return self.moving or not self.ready


def slot_of(
    pod: Pod, state: SlotState, doing: str = "", step: PodStep | None = None, after: float | None = None
) -> Slot:
    """The slot of a pod."""
    return Slot(pod.name, state, doing, step, requeue_after=after)


def stuck(pod: Pod, reason: str, message: str, *, step: PodStep | None = None, after: float | None = None) -> Slot:
    """The slot of a pod with a problem that ends the update. `message`: without the name of the pod."""
    name = pod.name
    problem = Problem(reason, f"Pod {name}: {message}")
    return Slot(name, SlotState.STUCK, "cannot be updated", step, problem, requeue_after=after)


def unknown(pod: Pod) -> Slot:
    """The slot of a pod whose next step depends on whether the cluster can resize pods."""
    return slot_of(pod, SlotState.BUSY, "waits until the API server reports which APIs it serves", after=UNKNOWN)
