"""The observed state of the pod of a slot: whether it is available, and whether it can become ready."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.kube.times import past_time
from memcached_operator.memcached.updates.target import REVISION_LABEL
from memcached_operator.world.pods import condition_of, container_status, serves

RESTARTING: Final = timedelta(seconds=60)
"""The time for which an ended container delays a change. A kubelet restarts it, or waits with it, within seconds."""


def revision_of(pod: Object) -> str:
    """The revision of the pod template, as its label says; empty without it."""
    return nested_map(pod, "metadata", "labels").get(REVISION_LABEL, "")


def seconds_until_broken(pod: Object, containers: Sequence[str], warm_up: int, now: datetime) -> float | None:
    """Seconds until the update of a pod need not wait for others, 0 if it need not now; None if the pod is ready.

    At once if the first container does not run: no item is lost. After the deadline if a container fails, and after the
    time to warm up too if all run, in seconds: such a pod does not become ready by itself, and others can be like it.
    """
    running = [name for name in containers if runs(pod, name)]
    if containers[0] not in running:
        return 0
    ready = condition_of(pod, "Ready")
    since = past_time(ready.get("lastTransitionTime"), now)
    if ready.get("status") == "True" or since is None:
        return None
    failing = len(running) < len(containers) or not serves(pod, containers[0])
    limit = PROGRESS_DEADLINE + timedelta(seconds=0 if failing else warm_up)
    return max(0.0, (limit - (now - since)).total_seconds())


def runs(pod: Object, container: str) -> bool:
    """Whether a container runs now."""
    return "running" in _state(pod, container)


def seconds_until_restarted(pod: Object, now: datetime) -> float:
    """Seconds for which a container that has just ended delays a change: its restart could be taken for that of it."""
    ends = (nested_map(status, "state").get("terminated") for status in nested_list(pod, "status", "containerStatuses"))
    times = [past_time(end.get("finishedAt"), now) for end in ends if end is not None]
    return max([0.0, *((RESTARTING - (now - at)).total_seconds() for at in times if at is not None)])


def never_started(pod: Object, container: str) -> bool:
    """Whether a container has never run, so that a new pod loses nothing."""
    states = (_state(pod, container), _state(pod, container, "lastState"))
    return not any("running" in state or "terminated" in state for state in states)


def seconds_until_available(pod: Object, min_ready: int, now: datetime) -> float | None:
    """Seconds until the pod is available; None if it is not ready."""
    since = ready_since(pod, now)
    return None if since is None else max(0.0, min_ready - (now - since).total_seconds())


def ready_since(pod: Object, now: datetime) -> datetime | None:
    """The time at which the pod became ready; None if it is not ready."""
    ready = condition_of(pod, "Ready")
    return past_time(ready.get("lastTransitionTime"), now) or now if ready.get("status") == "True" else None


def waiting_for(pod: Object, container: str) -> Mapping[str, Any]:
    """The reason and the message with which a container waits; empty if it does not."""
    return nested_map(_state(pod, container), "waiting")


def _state(pod: Object, container: str, part: str = "state") -> Mapping[str, Any]:
    return nested_map(container_status(pod, container), part)
