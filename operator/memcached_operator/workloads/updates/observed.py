"""What the pod of a slot shows: whether it is available, whether it can become ready, and what an update has done."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.status.conditions import truncate
from memcached_operator.workloads.pods import IMAGE_REASONS, START_REASONS, condition_of, container_status
from memcached_operator.workloads.rollout import PROGRESS_DEADLINE
from memcached_operator.workloads.times import past_time
from memcached_operator.workloads.updates.record import MAX_MESSAGE, Record
from memcached_operator.workloads.updates.target import REVISION_LABEL
from memcached_operator.workloads.warm_up import serves


def revision_of(pod: Object) -> str:
    """The revision of the pod template, as its label says; empty without it."""
    return nested_map(pod, "metadata", "labels").get(REVISION_LABEL, "")


def restarts(pod: Object, container: str) -> int:
    """How often a container was restarted."""
    return container_status(pod, container).get("restartCount", 0)


def has_restarted(pod: Object, container: str, record: Record) -> bool:
    """Whether a container has restarted since the record was written, or need not."""
    before = record.restarts.get(container)
    return before is None or restarts(pod, container) > before


def is_broken(pod: Object, containers: Sequence[str], now: datetime) -> bool:
    """Whether the first container does not run, or one of them has failed for a long time, so that no item is lost."""
    running = [name for name in containers if "running" in _state(pod, name)]
    if containers[0] not in running:
        return True
    ready = condition_of(pod, "Ready")
    since = past_time(ready.get("lastTransitionTime"), now)
    failing = len(running) < len(containers) or not serves(pod, containers[0])
    return failing and ready.get("status") != "True" and since is not None and now - since > PROGRESS_DEADLINE


def is_restarting(pod: Object) -> bool:
    """Whether a container has just ended, so that its restart could be taken for that of an update."""
    statuses = nested_list(pod, "status", "containerStatuses")
    return any("terminated" in nested_map(each, "state") for each in statuses)


def in_flight(pod: Object, record: Record) -> bool:
    """Whether the kubelet has not yet made an update, which it may not have seen. Not if a container cannot start."""
    return revision_of(pod) == record.revision and any(
        restarts(pod, name) == before and nested_map(_state(pod, name), "waiting").get("reason") not in _FAILED
        for name, before in record.restarts.items()
    )


def never_started(pod: Object, container: str) -> bool:
    """Whether a container has never run, so that a new pod loses nothing."""
    states = (_state(pod, container), _state(pod, container, "lastState"))
    return not any("running" in each or "terminated" in each for each in states)


def until_available(pod: Object, min_ready: int, now: datetime) -> float | None:
    """Seconds until the pod is available; None if it is not ready."""
    ready = condition_of(pod, "Ready")
    if ready.get("status") != "True":
        return None
    since = past_time(ready.get("lastTransitionTime"), now) or now
    return max(0.0, min_ready - (now - since).total_seconds())


def ready_since(pod: Object) -> str:
    """The time at which the pod became ready; empty if it is not ready."""
    found = condition_of(pod, "Ready")
    return found.get("lastTransitionTime") or "" if found.get("status") == "True" else ""


def unconfirmed(pod: Object, record: Record, first: str) -> str:
    """What the pod does until its update is in effect; empty if it is. `first`: the name of the first container."""
    for name in record.restarts:
        if not has_restarted(pod, name, record):
            return "restarts with its items" if name == first else f"restarts its container {name}"
    if not (since := ready_since(pod)):
        return "is not ready yet"
    return "grows" if since == record.ready_since else ""


def image_failure(pod: Object, record: Record) -> str:
    """Why an image of the update cannot be pulled; empty if it can, or if it was pulled before.

    The kubelet reports the error of the image before for a moment, so the error must name the present one.
    """
    for name in record.before.images if record.before else ():
        waiting, image = nested_map(_state(pod, name), "waiting"), _image(pod, name)
        cause: str = waiting.get("message") or ""
        if waiting.get("reason") in IMAGE_REASONS and f'"{image}"' in cause and not has_restarted(pod, name, record):
            return truncate(f"the image {image} cannot be pulled: {cause}", MAX_MESSAGE)
    return ""


def _state(pod: Object, container: str, part: str = "state") -> Mapping[str, Any]:
    return nested_map(container_status(pod, container), part)


def _image(pod: Object, container: str) -> str:
    return next((each["image"] for each in pod["spec"]["containers"] if each["name"] == container), "")


_FAILED = IMAGE_REASONS | START_REASONS
