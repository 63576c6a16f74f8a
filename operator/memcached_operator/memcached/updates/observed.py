"""The observed state of the pod of a slot: whether it is available, and whether it can become ready."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.kube.times import past_time
from memcached_operator.memcached.updates.target import REVISION_LABEL
from memcached_operator.world.pod import Pod

RESTARTING: Final = timedelta(seconds=60)
"""The time for which an ended container delays a change. A kubelet restarts it, or waits with it, within seconds."""


def revision_of(pod: Pod) -> str:
    """The revision of the pod template, as its label says; empty without it."""
    return pod.metadata.labels.get(REVISION_LABEL, "")


def seconds_until_broken(pod: Pod, containers: Sequence[str], warm_up: int, now: datetime) -> float | None:
    """Seconds until the update of a pod need not wait for others, 0 if it need not now; None if the pod is ready.

    At once if the first container does not run: no item is lost. After the deadline if a container fails, and after the
    time to warm up too if all run, in seconds: such a pod does not become ready by itself, and others can be like it.
    """
    running = [name for name in containers if runs(pod, name)]
    if containers[0] not in running:
        return 0
    since = past_time(pod.condition("Ready").last_transition_time, now)
    if pod.is_ready or since is None:
        return None
    failing = len(running) < len(containers) or not pod.serves(containers[0])
    limit = PROGRESS_DEADLINE + timedelta(seconds=0 if failing else warm_up)
    return max(0.0, (limit - (now - since)).total_seconds())


def runs(pod: Pod, container: str) -> bool:
    """Whether a container runs now."""
    return pod.container_status(container).state.running is not None


def seconds_until_restarted(pod: Pod, now: datetime) -> float:
    """Seconds for which a container that has just ended delays a change: its restart could be taken for that of it."""
    ends = (status.state.terminated for status in pod.status.container_statuses)
    times = [past_time(end.finished_at, now) for end in ends if end is not None]
    return max([0.0, *((RESTARTING - (now - at)).total_seconds() for at in times if at is not None)])


def never_started(pod: Pod, container: str) -> bool:
    """Whether a container has never run, so that a new pod loses nothing."""
    return not pod.container_status(container).has_run


def seconds_until_available(pod: Pod, min_ready: int, now: datetime) -> float | None:
    """Seconds until the pod is available; None if it is not ready."""
    since = ready_since(pod, now)
    return None if since is None else max(0.0, min_ready - (now - since).total_seconds())


def ready_since(pod: Pod, now: datetime) -> datetime | None:
    """The time at which the pod became ready; None if it is not ready."""
    return past_time(pod.condition("Ready").last_transition_time, now) or now if pod.is_ready else None
